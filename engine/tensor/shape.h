#ifndef TANDEM_ENGINE_TENSOR_SHAPE_H_
#define TANDEM_ENGINE_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace tandem {

// The extents of a tensor, outermost first. {} is a single number. Extents are at least 0. Images are NCHW,
// convolution weights OIHW, dense weights [outputs, inputs].
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : extents_(extents) {}
  explicit Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) {}

  int rank() const { return static_cast<int>(extents_.size()); }
  // Returns the extent of dimension `i`. Negative numbers count from the last dimension.
  int64_t operator[](int i) const { return extents_[Index(i)]; }
  absl::Span<const int64_t> extents() const { return extents_; }

  // Returns the shape of a batch of so many samples of this shape: [samples, ...].
  Shape Batched(int64_t samples) const;
  // Returns this shape with another extent of dimension `i`. Negative numbers count from the last dimension.
  Shape WithExtent(int i, int64_t extent) const;
  // Return the dimensions from `i` on, and the dimensions before `i`. Negative numbers count from the end.
  Shape From(int i) const;
  Shape UpTo(int i) const;

  // Returns the product of the extents, 1 for {}. Saturates at the largest int64_t.
  int64_t elements() const;

  // Returns for example "[128, 20, 24, 24]".
  std::string ToString() const;

  bool operator==(const Shape&) const = default;

 private:
  int Index(int i) const { return i < 0 ? i + rank() : i; }

  std::vector<int64_t> extents_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TENSOR_SHAPE_H_
