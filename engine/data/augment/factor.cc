#include "engine/data/augment/factor.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

// Changes x to mean + factor (x - mean).
template <typename T>
void Spread(float factor, float mean, T* image, int64_t elements) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    std::array<uint8_t, 256> table;
    for (int value = 0; value < 256; ++value) {
      const float spread = mean + factor * (static_cast<float>(value) - mean);
      table[value] = static_cast<uint8_t>(std::clamp(spread, 0.0F, 255.0F) + 0.5F);
    }
    for (int64_t i = 0; i < elements; ++i) image[i] = table[image[i]];
  } else {
    for (int64_t i = 0; i < elements; ++i) image[i] = mean + factor * (image[i] - mean);
  }
}

template <typename T>
class Factor final : public Transform<T> {
 public:
  Factor(bool about_mean, double strength, const ImageShape& shape)
      : about_mean_(about_mean), strength_(strength), elements_(shape.elements()) {}
  int numbers() const override { return 1; }
  void Draw(RandomStream& random, double* drawn) const override {
    *drawn = 1 + (2 * random.NextUniform() - 1) * strength_;
  }
  void Apply(const double* drawn, T* image, T* /*scratch*/) const override {
    const auto factor = static_cast<float>(*drawn);
    float mean = 0;
    if (about_mean_) {
      using Sum = std::conditional_t<std::is_same_v<T, uint8_t>, int64_t, double>;
      Sum sum = 0;
      for (int64_t i = 0; i < elements_; ++i) sum += image[i];
      mean = static_cast<float>(static_cast<double>(sum) / static_cast<double>(elements_));
    }
    Spread(factor, mean, image, elements_);
  }

 private:
  const bool about_mean_;
  const double strength_;
  const int64_t elements_;
};

}  // namespace

absl::Status CheckFactor(const v1::RandomFactor& factor) {
  if (factor.strength() > 0 && factor.strength() <= 1) return absl::OkStatus();
  return FieldError("strength", absl::StrCat("is ", factor.strength(), "; it must be above 0 and at most 1"));
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeBrightness(const v1::RandomFactor& factor, const ImageShape& shape) {
  return std::make_unique<Factor<T>>(/*about_mean=*/false, factor.strength(), shape);
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeContrast(const v1::RandomFactor& factor, const ImageShape& shape) {
  return std::make_unique<Factor<T>>(/*about_mean=*/true, factor.strength(), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeBrightness(const v1::RandomFactor&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeBrightness(const v1::RandomFactor&, const ImageShape&);
template std::unique_ptr<const Transform<uint8_t>> MakeContrast(const v1::RandomFactor&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeContrast(const v1::RandomFactor&, const ImageShape&);

}  // namespace tandem
