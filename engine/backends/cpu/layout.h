#ifndef TANDEM_ENGINE_BACKENDS_CPU_LAYOUT_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LAYOUT_H_

#include <cstdint>
#include <utility>

#include "dnnl.hpp"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem::cpu {

// How the elements of a tensor lie in memory. A value.
class Layout {
 public:
  enum class Kind : uint8_t {
    kPlain,         // Row-major, any type.
    kBatchBlocked,  // [ceil(N / 16)][...][16]: see kernels.h.
    kOneDnn,        // float32, bfloat16 or uint8, as oneDNN describes it.
  };

  static Layout Plain(DType dtype, Shape shape);
  // `shape` has at least one dimension.
  static Layout BatchBlocked(DType dtype, Shape shape);
  // Becomes plain where `desc` is row-major.
  static Layout OneDnn(const dnnl::memory::desc& desc, Shape shape);

  Kind kind() const { return kind_; }
  bool plain() const { return kind_ == Kind::kPlain; }
  bool batch_blocked() const { return kind_ == Kind::kBatchBlocked; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  // Padding included.
  int64_t bytes() const;
  // Elements that the memory holds, padding included.
  int64_t elements() const { return bytes() / SizeOf(dtype_); }
  // As oneDNN describes a layout that is plain or its own, of a type that oneDNN has.
  dnnl::memory::desc desc() const;

  // The same places for elements of another type. Of uint8, only plain ones have this.
  Layout WithType(DType dtype) const;

  bool operator==(const Layout& other) const;

 private:
  Layout(Kind kind, DType dtype, Shape shape) : kind_(kind), dtype_(dtype), shape_(std::move(shape)) {}

  Kind kind_;
  DType dtype_;
  Shape shape_;
  dnnl::memory::desc desc_;  // Of kOneDnn.
};

// Row-major float32.
inline Layout Float32Layout(const Shape& shape) { return Layout::Plain(DType::kFloat32, shape); }
// Of float32, bfloat16 or uint8.
dnnl::memory::data_type OneDnnType(DType dtype);
// Row-major, in oneDNN's words.
dnnl::memory::desc PlainDesc(DType dtype, const Shape& shape);
dnnl::memory::dims Dims(const Shape& shape);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LAYOUT_H_
