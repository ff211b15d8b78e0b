#include "engine/data/augment/cutmix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

constexpr double kMaxCutMixAlpha = 1000;

template <typename T>
class CutmixOf final : public Mixing<T> {
 public:
  CutmixOf(double alpha, double probability, const ImageShape& shape)
      : alpha_(alpha), probability_(probability), shape_(shape) {}
  double Apply(RandomStream& random, const T* partner, T* sample) const override {
    if (random.NextUniform() >= probability_) return 1;
    const int64_t height = shape_.height, width = shape_.width;
    const double side = std::sqrt(1 - DrawBeta(random, alpha_));
    const auto cut_width = static_cast<int64_t>(static_cast<double>(width) * side);
    const auto cut_height = static_cast<int64_t>(static_cast<double>(height) * side);
    const int64_t left = random.NextBelow(static_cast<uint32_t>(width)) - cut_width / 2;
    const int64_t top = random.NextBelow(static_cast<uint32_t>(height)) - cut_height / 2;
    const int64_t begin = std::max<int64_t>(0, left), end = std::min(width, left + cut_width);
    const int64_t first = std::max<int64_t>(0, top), last = std::min(height, top + cut_height);
    if (begin >= end || first >= last) return 1;
    for (int64_t c = 0; c < shape_.channels; ++c) {
      for (int64_t row = first; row < last; ++row) {
        const int64_t at = (c * height + row) * width;
        std::memcpy(sample + at + begin, partner + at + begin, (end - begin) * sizeof(T));
      }
    }
    return 1 - static_cast<double>((end - begin) * (last - first)) / static_cast<double>(height * width);
  }

 private:
  const double alpha_;
  const double probability_;
  const ImageShape shape_;
};

}  // namespace

absl::Status CheckCutmix(const v1::Cutmix& cutmix) {
  FieldViolations violations;
  if (cutmix.has_alpha() && !(cutmix.alpha() >= kLeastAlpha && cutmix.alpha() <= kMaxCutMixAlpha)) {
    violations.Add("alpha", absl::StrCat("is ", cutmix.alpha(), "; it must be from ", kLeastAlpha, " to ",
                                         kMaxCutMixAlpha));
  }
  CheckZeroToOne("probability", cutmix.probability(), violations);
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Mixing<T>> MakeCutmix(const v1::Cutmix& cutmix, const ImageShape& shape) {
  return std::make_unique<CutmixOf<T>>(cutmix.has_alpha() ? cutmix.alpha() : 1,
                                       cutmix.has_probability() ? cutmix.probability() : 1, shape);
}

template std::unique_ptr<const Mixing<uint8_t>> MakeCutmix(const v1::Cutmix&, const ImageShape&);
template std::unique_ptr<const Mixing<float>> MakeCutmix(const v1::Cutmix&, const ImageShape&);

}  // namespace tandem
