#include "engine/tensor/shape.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {

Shape Shape::Batched(int64_t samples) const {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), extents_.begin(), extents_.end());
  return Shape(std::move(extents));
}

Shape Shape::WithExtent(int i, int64_t extent) const {
  Shape shape = *this;
  shape.extents_[Index(i)] = extent;
  return shape;
}

Shape Shape::From(int i) const {
  return Shape(std::vector<int64_t>(extents_.begin() + Index(i), extents_.end()));
}

Shape Shape::UpTo(int i) const {
  return Shape(std::vector<int64_t>(extents_.begin(), extents_.begin() + Index(i)));
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (const int64_t extent : extents_) {
    if (extent == 0) return 0;
    if (product > std::numeric_limits<int64_t>::max() / extent) {
      product = std::numeric_limits<int64_t>::max();
    } else {
      product *= extent;
    }
  }
  return product;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(extents_, ", "), "]"); }

}  // namespace tandem
