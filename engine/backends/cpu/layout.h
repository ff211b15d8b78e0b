#ifndef TANDEM_ENGINE_BACKENDS_CPU_LAYOUT_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LAYOUT_H_

#include <cstdint>
#include <utility>

#include "dnnl.hpp"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem::cpu {

// The place of a tensor's elements in memory. A value type.
class Layout {
 public:
  enum class Kind : uint8_t {
    kPlain,         // Row-major, any type.
    kBatchBlocked,  // [ceil(N / 16)][...][16]: see kernels.h.
    kTiled,         // bfloat16 images, and their indices: see tiles.h.
    kOneDnn,        // float32, bfloat16 or uint8, described by oneDNN.
  };

  static Layout Plain(DType dtype, Shape shape);
  // `shape` has at least one dimension.
  static Layout BatchBlocked(DType dtype, Shape shape);
  // `shape` is [N, C, H, W], with N a multiple of 16. `dtype` is bfloat16, or uint8 for the indices of a
  // pooling.
  static Layout Tiled(Shape shape, DType dtype = DType::kBFloat16);
  // Returns a plain layout if `desc` is row-major.
  static Layout OneDnn(const dnnl::memory::desc& desc, Shape shape);

  Kind kind() const { return kind_; }
  bool plain() const { return kind_ == Kind::kPlain; }
  bool batch_blocked() const { return kind_ == Kind::kBatchBlocked; }
  bool tiled() const { return kind_ == Kind::kTiled; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  // Returns the bytes with padding.
  int64_t bytes() const;
  // Returns the number of elements in memory, with padding.
  int64_t elements() const { return bytes() / SizeOf(dtype_); }
  // Returns oneDNN's description of a plain layout or of its own layout. oneDNN must have the type.
  dnnl::memory::desc desc() const;

  // Returns the same layout for another type. For uint8 only a plain layout works. A tiled layout becomes
  // plain.
  Layout WithType(DType dtype) const;

  bool operator==(const Layout& other) const;

 private:
  Layout(Kind kind, DType dtype, Shape shape) : kind_(kind), dtype_(dtype), shape_(std::move(shape)) {}

  Kind kind_;
  DType dtype_;
  Shape shape_;
  dnnl::memory::desc desc_;  // For kOneDnn.
};

// Returns the row-major layout of float32.
inline Layout Float32Layout(const Shape& shape) { return Layout::Plain(DType::kFloat32, shape); }
// Returns oneDNN's type for float32, bfloat16 or uint8.
dnnl::memory::data_type OneDnnType(DType dtype);
// Returns oneDNN's description of a row-major layout.
dnnl::memory::desc PlainDesc(DType dtype, const Shape& shape);
dnnl::memory::dims Dims(const Shape& shape);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LAYOUT_H_
