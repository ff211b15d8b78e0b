#include "engine/data/augment/erase.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

template <typename T>
class Erase final : public Transform<T> {
 public:
  Erase(double probability, int64_t height, int64_t width, const ImageShape& shape)
      : probability_(probability), height_(height), width_(width), shape_(shape) {}
  int numbers() const override { return 4; }
  void Draw(RandomStream& random, double* drawn) const override {
    std::fill(drawn, drawn + 4, 0.0);
    if (random.NextUniform() >= probability_) return;
    const int64_t left = random.NextBelow(static_cast<uint32_t>(shape_.width)) - width_ / 2;
    const int64_t top = random.NextBelow(static_cast<uint32_t>(shape_.height)) - height_ / 2;
    const int64_t begin = std::max<int64_t>(0, left), end = std::min(shape_.width, left + width_);
    const int64_t first = std::max<int64_t>(0, top), last = std::min(shape_.height, top + height_);
    drawn[0] = static_cast<double>(begin);
    drawn[1] = static_cast<double>(end);
    drawn[2] = static_cast<double>(first);
    drawn[3] = static_cast<double>(last);
  }
  void Apply(const double* drawn, T* image, T* /*scratch*/) const override {
    const auto begin = static_cast<int64_t>(drawn[0]), end = static_cast<int64_t>(drawn[1]);
    const auto first = static_cast<int64_t>(drawn[2]), last = static_cast<int64_t>(drawn[3]);
    if (begin >= end) return;
    for (int64_t c = 0; c < shape_.channels; ++c, image += shape_.height * shape_.width) {
      for (int64_t row = first; row < last; ++row) {
        std::fill(image + row * shape_.width + begin, image + row * shape_.width + end, T{0});
      }
    }
  }

 private:
  const double probability_;
  const int64_t height_;
  const int64_t width_;
  const ImageShape shape_;
};

// Far above the size of any image.
constexpr int64_t kMaxPixels = 1 << 20;

}  // namespace

absl::Status CheckErase(const v1::RandomErase& erase) {
  FieldViolations violations;
  CheckZeroToOne("probability", erase.probability(), violations);
  for (const auto& [field, pixels] :
       {std::pair("height", erase.height()), std::pair("width", erase.width())}) {
    if (pixels >= 1 && pixels <= kMaxPixels) continue;
    violations.Add(field, absl::StrCat("is ", pixels, "; it must be from 1 to ", kMaxPixels));
  }
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeErase(const v1::RandomErase& erase, const ImageShape& shape) {
  return std::make_unique<Erase<T>>(erase.has_probability() ? erase.probability() : 1, erase.height(),
                                    erase.width(), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeErase(const v1::RandomErase&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeErase(const v1::RandomErase&, const ImageShape&);

}  // namespace tandem
