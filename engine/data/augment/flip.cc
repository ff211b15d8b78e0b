#include "engine/data/augment/flip.h"

#include <algorithm>

#include "engine/base/field_violations.h"

namespace tandem {
namespace {

double ProbabilityOf(const v1::RandomFlip& flip) { return flip.has_probability() ? flip.probability() : 0.5; }

template <typename T>
class HorizontalFlip final : public Transform<T> {
 public:
  HorizontalFlip(double probability, const ImageShape& shape) : probability_(probability), shape_(shape) {}
  int numbers() const override { return 1; }
  void Draw(RandomStream& random, double* drawn) const override {
    *drawn = random.NextUniform() < probability_ ? 1 : 0;
  }
  void Apply(const double* drawn, T* image, T* /*scratch*/) const override {
    if (*drawn == 0) return;
    const int64_t width = shape_.width;
    for (int64_t row = 0; row < shape_.channels * shape_.height; ++row, image += width) {
      std::reverse(image, image + width);
    }
  }

 private:
  const double probability_;
  const ImageShape shape_;
};

template <typename T>
class VerticalFlip final : public Transform<T> {
 public:
  VerticalFlip(double probability, const ImageShape& shape) : probability_(probability), shape_(shape) {}
  int numbers() const override { return 1; }
  void Draw(RandomStream& random, double* drawn) const override {
    *drawn = random.NextUniform() < probability_ ? 1 : 0;
  }
  void Apply(const double* drawn, T* image, T* /*scratch*/) const override {
    if (*drawn == 0) return;
    const int64_t width = shape_.width;
    for (int64_t c = 0; c < shape_.channels; ++c, image += shape_.height * width) {
      for (int64_t top = 0, bottom = shape_.height - 1; top < bottom; ++top, --bottom) {
        std::swap_ranges(image + top * width, image + (top + 1) * width, image + bottom * width);
      }
    }
  }

 private:
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
  return std::make_unique<HorizontalFlip<T>>(ProbabilityOf(flip), shape);
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeVerticalFlip(const v1::RandomFlip& flip, const ImageShape& shape) {
  return std::make_unique<VerticalFlip<T>>(ProbabilityOf(flip), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeHorizontalFlip(const v1::RandomFlip&,
                                                                      const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeHorizontalFlip(const v1::RandomFlip&, const ImageShape&);
template std::unique_ptr<const Transform<uint8_t>> MakeVerticalFlip(const v1::RandomFlip&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeVerticalFlip(const v1::RandomFlip&, const ImageShape&);

}  // namespace tandem
