#include "engine/data/augment/colour.h"

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/data/augment/factor.h"
#include "engine/data/augment/pixel_loops.h"

namespace tandem {
namespace {

void CheckChannels(const ImageShape& shape, FieldViolations& violations) {
  if (shape.channels == 3) return;
  violations.Add(
      "",
      absl::StrCat("needs samples of three channels, red, green and blue, but those of the data set have ",
                   shape.channels, "; leave it out"));
}

template <typename T>
class Saturation final : public Transform<T> {
 public:
  Saturation(double strength, const ImageShape& shape)
      : strength_(strength), area_(shape.height * shape.width) {}
  int numbers() const override { return 1; }
  void Draw(RandomStream& random, double* drawn) const override {
    *drawn = 1 + (2 * random.NextUniform() - 1) * strength_;
  }
  void Apply(const double* drawn, T* image, T* /*scratch*/) const override {
    Saturate(static_cast<float>(*drawn), area_, image, image + area_, image + 2 * area_);
  }

 private:
  const double strength_;
  const int64_t area_;
};

class Hue final : public Transform<uint8_t> {
 public:
  Hue(double strength, const ImageShape& shape) : strength_(strength), area_(shape.height * shape.width) {}
  int numbers() const override { return 1; }
  void Draw(RandomStream& random, double* drawn) const override {
    *drawn = (2 * random.NextUniform() - 1) * strength_;
  }
  void Apply(const double* drawn, uint8_t* image, uint8_t* /*scratch*/) const override {
    ShiftHues(static_cast<float>(6 * *drawn), area_, image, image + area_, image + 2 * area_);
  }

 private:
  const double strength_;
  const int64_t area_;
};

}  // namespace

absl::Status CheckSaturation(const v1::RandomFactor& factor, const ImageShape& shape) {
  FieldViolations violations;
  CheckChannels(shape, violations);
  violations.AddAll("", CheckFactor(factor));
  return violations.ToStatus();
}

absl::Status CheckHue(const v1::RandomHue& hue, const ImageShape& shape, SampleType type) {
  FieldViolations violations;
  CheckChannels(shape, violations);
  if (type != SampleType::kBytes) {
    violations.Add("", "needs samples of bytes, but those of the data set are floats; leave it out");
  }
  if (!(hue.strength() > 0 && hue.strength() <= 0.5)) {
    violations.Add("strength", absl::StrCat("is ", hue.strength(), "; it must be above 0 and at most 0.5"));
  }
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeSaturation(const v1::RandomFactor& factor, const ImageShape& shape) {
  return std::make_unique<Saturation<T>>(factor.strength(), shape);
}

std::unique_ptr<const Transform<uint8_t>> MakeHue(const v1::RandomHue& hue, const ImageShape& shape) {
  return std::make_unique<Hue>(hue.strength(), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeSaturation(const v1::RandomFactor&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeSaturation(const v1::RandomFactor&, const ImageShape&);

}  // namespace tandem
