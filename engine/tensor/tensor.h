#ifndef TANDEM_ENGINE_TENSOR_TENSOR_H_
#define TANDEM_ENGINE_TENSOR_TENSOR_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem {

// A tensor in host memory: dense, row-major, 64-byte aligned, initially zero. Copies are deep.
// Thread-compatible.
class Tensor {
 public:
  Tensor() : Tensor(DType::kFloat32, Shape({0})) {}
  Tensor(DType dtype, Shape shape);
  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  // Returns a tensor that holds `values`, as many as `shape` has elements.
  template <typename T>
  static Tensor Of(Shape shape, const std::vector<T>& values) {
    Tensor tensor(DTypeOf<T>::value, std::move(shape));
    assert(values.size() == static_cast<size_t>(tensor.elements()));
    std::memcpy(tensor.raw_data(), values.data(), values.size() * sizeof(T));
    return tensor;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }

  void* raw_data() { return data_.get(); }
  const void* raw_data() const { return data_.get(); }

  // Returns the elements. T must be the C++ type of dtype().
  template <typename T>
  absl::Span<T> data() {
    assert(DTypeOf<T>::value == dtype_);
    return absl::MakeSpan(static_cast<T*>(raw_data()), elements());
  }
  template <typename T>
  absl::Span<const T> data() const {
    assert(DTypeOf<T>::value == dtype_);
    return absl::MakeConstSpan(static_cast<const T*>(raw_data()), elements());
  }

  // Returns the numbers in another type, rounded to nearest if the type holds less. Only for float32,
  // float64, int32, int64 and uint8.
  Tensor CastTo(DType dtype) const;

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  DType dtype_;
  Shape shape_;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TENSOR_TENSOR_H_
