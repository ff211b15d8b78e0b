#include "engine/data/augment/affine.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

// The pixel (x, y), relative to the centre, is read at (xx x + xy y, yx x + yy y).
struct Matrix {
  double xx, xy, yx, yy;
};

void Keep(const Matrix& matrix, double* drawn) {
  drawn[0] = matrix.xx;
  drawn[1] = matrix.xy;
  drawn[2] = matrix.yx;
  drawn[3] = matrix.yy;
}
Matrix MatrixOf(const double* drawn) { return {drawn[0], drawn[1], drawn[2], drawn[3]}; }

template <typename T>
T Rounded(float value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(value + 0.5F);
  } else {
    return value;
  }
}

// Resamples bilinearly: the four nearest pixels, weighted by their nearness.
template <typename T>
void Resample(const Matrix& matrix, v1::FillMode fill, const ImageShape& shape, const T* source, T* image) {
  const int64_t height = shape.height, width = shape.width, area = height * width;
  const double centre_x = 0.5 * static_cast<double>(width - 1);
  const double centre_y = 0.5 * static_cast<double>(height - 1);
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const double x = static_cast<double>(column) - centre_x, y = static_cast<double>(row) - centre_y;
      const double at_x = matrix.xx * x + matrix.xy * y + centre_x;
      const double at_y = matrix.yx * x + matrix.yy * y + centre_y;
      const double floor_x = std::floor(at_x), floor_y = std::floor(at_y);
      const auto part_x = static_cast<float>(at_x - floor_x), part_y = static_cast<float>(at_y - floor_y);
      const int64_t x0 = FillIndex(static_cast<int64_t>(floor_x), width, fill);
      const int64_t x1 = FillIndex(static_cast<int64_t>(floor_x) + 1, width, fill);
      const int64_t y0 = FillIndex(static_cast<int64_t>(floor_y), height, fill);
      const int64_t y1 = FillIndex(static_cast<int64_t>(floor_y) + 1, height, fill);
      const auto at = [&](const T* plane, int64_t py, int64_t px) {
        return py < 0 || px < 0 ? 0.0F : static_cast<float>(plane[py * width + px]);
      };
      for (int64_t c = 0; c < shape.channels; ++c) {
        const T* plane = source + c * area;
        const float upper = at(plane, y0, x0) * (1 - part_x) + at(plane, y0, x1) * part_x;
        const float lower = at(plane, y1, x0) * (1 - part_x) + at(plane, y1, x1) * part_x;
        image[c * area + row * width + column] = Rounded<T>(upper * (1 - part_y) + lower * part_y);
      }
    }
  }
}

// A transform that draws a matrix.
template <typename T>
class Resampling : public Transform<T> {
 public:
  Resampling(v1::FillMode fill, const ImageShape& shape) : fill_(fill), shape_(shape) {}
  int numbers() const final { return 4; }
  void Apply(const double* drawn, T* image, T* scratch) const final {
    std::memcpy(scratch, image, shape_.elements() * sizeof(T));
    Resample(MatrixOf(drawn), fill_, shape_, scratch, image);
  }

 private:
  const v1::FillMode fill_;
  const ImageShape shape_;
};

template <typename T>
class Rotation final : public Resampling<T> {
 public:
  Rotation(double degrees, v1::FillMode fill, const ImageShape& shape)
      : Resampling<T>(fill, shape), radians_(degrees * 0.017453292519943295) {}
  void Draw(RandomStream& random, double* drawn) const override {
    const double angle = (2 * random.NextUniform() - 1) * radians_;
    const double cosine = std::cos(angle), sine = std::sin(angle);
    // Rows count downwards.
    Keep({cosine, -sine, sine, cosine}, drawn);
  }

 private:
  const double radians_;
};

template <typename T>
class Scale final : public Resampling<T> {
 public:
  Scale(double min, double max, v1::FillMode fill, const ImageShape& shape)
      : Resampling<T>(fill, shape), min_(min), max_(max) {}
  void Draw(RandomStream& random, double* drawn) const override {
    const double factor = min_ + (max_ - min_) * random.NextUniform();
    Keep({1 / factor, 0, 0, 1 / factor}, drawn);
  }

 private:
  const double min_;
  const double max_;
};

// Beyond these limits, places in the source would be so far away that the scale must be a mistake.
constexpr double kMinScale = 0.01;
constexpr double kMaxScale = 10;

}  // namespace

absl::Status CheckRotation(const v1::RandomRotation& rotation) {
  if (rotation.degrees() > 0 && rotation.degrees() <= 180) return absl::OkStatus();
  return FieldError("degrees",
                    absl::StrCat("is ", rotation.degrees(), "; it must be above 0 and at most 180"));
}

absl::Status CheckScale(const v1::RandomScale& scale) {
  FieldViolations violations;
  if (!(scale.min() >= kMinScale && scale.min() <= kMaxScale)) {
    violations.Add("min",
                   absl::StrCat("is ", scale.min(), "; it must be from ", kMinScale, " to ", kMaxScale));
  }
  if (!(scale.max() >= scale.min() && scale.max() <= kMaxScale)) {
    violations.Add("max", absl::StrCat("is ", scale.max(), "; it must be from min to ", kMaxScale));
  }
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeRotation(const v1::RandomRotation& rotation,
                                                 const ImageShape& shape) {
  return std::make_unique<Rotation<T>>(rotation.degrees(), rotation.fill(), shape);
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeScale(const v1::RandomScale& scale, const ImageShape& shape) {
  return std::make_unique<Scale<T>>(scale.min(), scale.max(), scale.fill(), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeRotation(const v1::RandomRotation&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeRotation(const v1::RandomRotation&, const ImageShape&);
template std::unique_ptr<const Transform<uint8_t>> MakeScale(const v1::RandomScale&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeScale(const v1::RandomScale&, const ImageShape&);

}  // namespace tandem
