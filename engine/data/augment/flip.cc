#include "engine/data/augment/flip.h"

#include <algorithm>

#include "engine/base/field_violations.h"

namespace tandem {
namespace {

double ProbabilityOf(const v1::RandomFlip& flip) { return flip.has_probability() ? flip.probability() : 0.5; }

template <typename T>
void FlipHorizontally(const ImageShape& shape, T* image) {
  for (int64_t row = 0; row < shape.channels * shape.height; ++row, image += shape.width) {
    std::reverse(image, image + shape.width);
  }
}

template <typename T>
void FlipVertically(const ImageShape& shape, T* image) {
  const int64_t width = shape.width;
  for (int64_t c = 0; c < shape.channels; ++c, image += shape.height * width) {
    for (int64_t top = 0, bottom = shape.height - 1; top < bottom; ++top, --bottom) {
      std::swap_ranges(image + top * width, image + (top + 1) * width, image + bottom * width);
    }
  }
}

template <typename T>
class Flip final : public Transform<T> {
 public:
  Flip(bool vertical, double probability, const ImageShape& shape)
      : vertical_(vertical), probability_(probability), shape_(shape) {}
  int numbers() const override { return 1; }
  void Draw(RandomStream& random, double* drawn) const override {
    *drawn = random.NextUniform() < probability_ ? 1 : 0;
  }
  void Apply(const double* drawn, T* image, T* /*scratch*/) const override {
    if (*drawn == 0) return;
    if (vertical_) {
      FlipVertically(shape_, image);
    } else {
      FlipHorizontally(shape_, image);
    }
  }

 private:
  const bool vertical_;
  const double probability_;
  const ImageShape shape_;
};

}  // namespace

absl::Status CheckFlip(const v1::RandomFlip& flip) {
  FieldViolations violations;
  CheckZeroToOne("probability", flip.probability(), violations);
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeHorizontalFlip(const v1::RandomFlip& flip, const ImageShape& shape) {
  return std::make_unique<Flip<T>>(/*vertical=*/false, ProbabilityOf(flip), shape);
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeVerticalFlip(const v1::RandomFlip& flip, const ImageShape& shape) {
  return std::make_unique<Flip<T>>(/*vertical=*/true, ProbabilityOf(flip), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeHorizontalFlip(const v1::RandomFlip&,
                                                                      const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeHorizontalFlip(const v1::RandomFlip&, const ImageShape&);
template std::unique_ptr<const Transform<uint8_t>> MakeVerticalFlip(const v1::RandomFlip&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeVerticalFlip(const v1::RandomFlip&, const ImageShape&);

}  // namespace tandem
