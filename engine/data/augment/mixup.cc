#include "engine/data/augment/mixup.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

constexpr double kMaxMixupAlpha = 1000;

template <typename T>
class MixupOf final : public Mixing<T> {
 public:
  MixupOf(double alpha, int64_t elements) : alpha_(alpha), elements_(elements) {}
  double Apply(RandomStream& random, const T* partner, T* sample) const override {
    const double own = DrawBeta(random, alpha_);
    const auto a = static_cast<float>(own), b = static_cast<float>(1 - own);
    for (int64_t i = 0; i < elements_; ++i) {
      const float mixed = a * static_cast<float>(sample[i]) + b * static_cast<float>(partner[i]);
      if constexpr (std::is_same_v<T, uint8_t>) {
        sample[i] = static_cast<uint8_t>(mixed + 0.5F);
      } else {
        sample[i] = mixed;
      }
    }
    return own;
  }

 private:
  const double alpha_;
  const int64_t elements_;
};

}  // namespace

absl::Status CheckMixup(const v1::Mixup& mixup) {
  if (!mixup.has_alpha() || (mixup.alpha() >= kLeastAlpha && mixup.alpha() <= kMaxMixupAlpha))
    return absl::OkStatus();
  return FieldError(
      "alpha", absl::StrCat("is ", mixup.alpha(), "; it must be from ", kLeastAlpha, " to ", kMaxMixupAlpha));
}

template <typename T>
std::unique_ptr<const Mixing<T>> MakeMixup(const v1::Mixup& mixup, int64_t elements) {
  return std::make_unique<MixupOf<T>>(mixup.has_alpha() ? mixup.alpha() : 0.2, elements);
}

template std::unique_ptr<const Mixing<uint8_t>> MakeMixup(const v1::Mixup&, int64_t);
template std::unique_ptr<const Mixing<float>> MakeMixup(const v1::Mixup&, int64_t);

}  // namespace tandem
