#include "engine/data/augment/resized_crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/data/augment/pixel_loops.h"

namespace tandem {
namespace {

// The limits of a rectangle's share of the area, and of its width divided by its height.
struct Limits {
  double min_area, max_area;
  double min_ratio, max_ratio;
};

Limits LimitsOf(const v1::RandomResizedCrop& crop) {
  return {.min_area = crop.has_min_area() ? crop.min_area() : 0.08,
          .max_area = crop.has_max_area() ? crop.max_area() : 1,
          .min_ratio = crop.has_min_ratio() ? crop.min_ratio() : 3.0 / 4,
          .max_ratio = crop.has_max_ratio() ? crop.max_ratio() : 4.0 / 3};
}

// Returns the places of `count` new pixels along an axis of which `size` pixels from `begin` on are read.
std::vector<Place> PlacesOf(int64_t begin, int64_t size, int64_t count) {
  std::vector<Place> places(count);
  const double scale = static_cast<double>(size) / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double at = std::clamp(centre, 0.0, static_cast<double>(size - 1));
    const auto first = static_cast<int64_t>(at);
    places[i] = {.first = static_cast<int32_t>(begin + first),
                 .second = static_cast<int32_t>(begin + std::min(first + 1, size - 1)),
                 .part = static_cast<float>(at - static_cast<double>(first))};
  }
  return places;
}

template <typename T>
class ResizedCrop final : public Transform<T> {
 public:
  ResizedCrop(const Limits& limits, const ImageShape& shape)
      : limits_(limits),
        log_min_ratio_(std::log(limits.min_ratio)),
        log_max_ratio_(std::log(limits.max_ratio)),
        shape_(shape) {}
  int numbers() const override { return 4; }

  void Draw(RandomStream& random, double* drawn) const override {
    constexpr int kTries = 10;
    const auto height = static_cast<double>(shape_.height), width = static_cast<double>(shape_.width);
    for (int i = 0; i < kTries; ++i) {
      const double share = limits_.min_area + (limits_.max_area - limits_.min_area) * random.NextUniform();
      const double ratio =
          std::exp(log_min_ratio_ + (log_max_ratio_ - log_min_ratio_) * random.NextUniform());
      const double area = share * height * width;
      const double columns = std::nearbyint(std::sqrt(area * ratio));
      const double rows = std::nearbyint(std::sqrt(area / ratio));
      if (columns < 1 || columns > width || rows < 1 || rows > height) continue;
      drawn[0] = random.NextBelow(static_cast<uint32_t>(width - columns) + 1);
      drawn[1] = random.NextBelow(static_cast<uint32_t>(height - rows) + 1);
      drawn[2] = columns;
      drawn[3] = rows;
      return;
    }
    const double ratio = width / height;
    const double columns =
        ratio > limits_.max_ratio ? std::max(1.0, std::nearbyint(height * limits_.max_ratio)) : width;
    const double rows =
        ratio < limits_.min_ratio ? std::max(1.0, std::nearbyint(width / limits_.min_ratio)) : height;
    drawn[0] = std::floor((width - columns) / 2);
    drawn[1] = std::floor((height - rows) / 2);
    drawn[2] = columns;
    drawn[3] = rows;
  }

  void Apply(const double* drawn, T* image, T* scratch) const override {
    const auto left = static_cast<int64_t>(drawn[0]), top = static_cast<int64_t>(drawn[1]);
    const auto columns = static_cast<int64_t>(drawn[2]), rows = static_cast<int64_t>(drawn[3]);
    const int64_t height = shape_.height, width = shape_.width;
    if (columns == width && rows == height) return;
    std::memcpy(scratch, image, shape_.elements() * sizeof(T));
    const std::vector<Place> across = PlacesOf(left, columns, width), down = PlacesOf(top, rows, height);
    // Two old rows, already enlarged across. Most new rows need the old rows of the row before.
    std::vector<float> lines(2 * width);
    float *upper = lines.data(), *lower = upper + width;
    for (int64_t c = 0; c < shape_.channels; ++c, scratch += height * width) {
      int64_t upper_row = -1, lower_row = -1;
      for (int64_t row = 0; row < height; ++row, image += width) {
        const Place& place = down[row];
        if (upper_row != place.first && lower_row == place.first) {
          std::swap(upper, lower);
          std::swap(upper_row, lower_row);
        }
        if (upper_row != place.first) {
          upper_row = place.first;
          EnlargeRow(scratch + upper_row * width, across.data(), width, upper);
        }
        if (lower_row != place.second) {
          lower_row = place.second;
          EnlargeRow(scratch + lower_row * width, across.data(), width, lower);
        }
        BlendRows(upper, lower, place.part, width, image);
      }
    }
  }

 private:
  const Limits limits_;
  const double log_min_ratio_;
  const double log_max_ratio_;
  const ImageShape shape_;
};

// Ratios beyond these limits must be a mistake.
constexpr double kMinRatio = 0.01;
constexpr double kMaxRatio = 100;

}  // namespace

absl::Status CheckResizedCrop(const v1::RandomResizedCrop& crop, const ImageShape& shape) {
  const Limits limits = LimitsOf(crop);
  FieldViolations violations;
  if (!(limits.min_area > 0 && limits.min_area <= 1)) {
    violations.Add("min_area", absl::StrCat("is ", limits.min_area, "; it must be above 0 and at most 1"));
  }
  const double pixel = 1 / static_cast<double>(shape.height * shape.width);
  if (!(limits.max_area >= limits.min_area && limits.max_area <= 1)) {
    violations.Add("max_area", absl::StrCat("is ", limits.max_area, "; it must be from min_area, ",
                                            limits.min_area, ", to 1"));
  } else if (limits.max_area < pixel) {
    violations.Add("max_area", absl::StrCat("is ", limits.max_area, "; it must be at least ", pixel,
                                            ", the share of one pixel"));
  }
  if (!(limits.min_ratio >= kMinRatio && limits.min_ratio <= kMaxRatio)) {
    violations.Add("min_ratio",
                   absl::StrCat("is ", limits.min_ratio, "; it must be from ", kMinRatio, " to ", kMaxRatio));
  }
  if (!(limits.max_ratio >= limits.min_ratio && limits.max_ratio <= kMaxRatio)) {
    violations.Add("max_ratio", absl::StrCat("is ", limits.max_ratio, "; it must be from min_ratio, ",
                                             limits.min_ratio, ", to ", kMaxRatio));
  }
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeResizedCrop(const v1::RandomResizedCrop& crop,
                                                    const ImageShape& shape) {
  return std::make_unique<ResizedCrop<T>>(LimitsOf(crop), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeResizedCrop(const v1::RandomResizedCrop&,
                                                                   const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeResizedCrop(const v1::RandomResizedCrop&,
                                                                 const ImageShape&);

}  // namespace tandem
