#include "engine/data/augment/translation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

template <typename T>
class Translation final : public Transform<T> {
 public:
  Translation(int64_t x, int64_t y, v1::FillMode fill, const ImageShape& shape)
      : x_(x), y_(y), fill_(fill), shape_(shape) {}

  int numbers() const override { return 2; }
  void Draw(RandomStream& random, double* drawn) const override {
    drawn[0] = static_cast<double>(DrawPixels(random, x_));
    drawn[1] = static_cast<double>(DrawPixels(random, y_));
  }
  void Apply(const double* drawn, T* image, T* scratch) const override {
    const auto right = static_cast<int64_t>(drawn[0]), down = static_cast<int64_t>(drawn[1]);
    if (right == 0 && down == 0) return;
    const int64_t height = shape_.height, width = shape_.width;
    std::memcpy(scratch, image, shape_.elements() * sizeof(T));
    // Columns [begin, end) come from the image itself.
    const int64_t begin = std::max<int64_t>(0, right), end = width + std::min<int64_t>(0, right);
    for (int64_t c = 0; c < shape_.channels; ++c, scratch += height * width) {
      for (int64_t row = 0; row < height; ++row, image += width) {
        const int64_t from = FillIndex(row - down, height, fill_);
        if (from < 0) {
          std::fill(image, image + width, T{0});
          continue;
        }
        const T* source = scratch + from * width;
        std::memcpy(image + begin, source + begin - right, (end - begin) * sizeof(T));
        for (int64_t column = 0; column < begin; ++column) image[column] = At(source, column - right);
        for (int64_t column = end; column < width; ++column) image[column] = At(source, column - right);
      }
    }
  }

 private:
  static int64_t DrawPixels(RandomStream& random, int64_t most) {
    return most == 0 ? 0 : static_cast<int64_t>(random.NextBelow(static_cast<uint32_t>(2 * most + 1))) - most;
  }
  T At(const T* row, int64_t column) const {
    const int64_t from = FillIndex(column, shape_.width, fill_);
    return from < 0 ? T{0} : row[from];
  }

  const int64_t x_;
  const int64_t y_;
  const v1::FillMode fill_;
  const ImageShape shape_;
};

void CheckPixels(absl::string_view field, int64_t value, int64_t least, int64_t size, const char* of,
                 FieldViolations& violations) {
  if (value >= least && value < size) return;
  violations.Add(field, absl::StrCat("is ", value, "; it must be at least ", least, " and below the image's ",
                                     of, ", ", size));
}

}  // namespace

absl::Status CheckTranslation(const v1::RandomTranslation& translation, const ImageShape& shape) {
  FieldViolations violations;
  CheckPixels("x", translation.x(), 0, shape.width, "width", violations);
  CheckPixels("y", translation.y(), 0, shape.height, "height", violations);
  if (translation.x() == 0 && translation.y() == 0) {
    violations.Add("x", "and y are 0: nothing would be moved; give one of them");
  }
  return violations.ToStatus();
}

absl::Status CheckCrop(const v1::RandomCrop& crop, const ImageShape& shape) {
  FieldViolations violations;
  const bool wide = shape.width >= shape.height;
  CheckPixels("padding", crop.padding(), 1, wide ? shape.height : shape.width, wide ? "height" : "width",
              violations);
  return violations.ToStatus();
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeTranslation(const v1::RandomTranslation& translation,
                                                    const ImageShape& shape) {
  return std::make_unique<Translation<T>>(translation.x(), translation.y(), translation.fill(), shape);
}

template <typename T>
std::unique_ptr<const Transform<T>> MakeCrop(const v1::RandomCrop& crop, const ImageShape& shape) {
  return std::make_unique<Translation<T>>(crop.padding(), crop.padding(), crop.fill(), shape);
}

template std::unique_ptr<const Transform<uint8_t>> MakeTranslation(const v1::RandomTranslation&,
                                                                   const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeTranslation(const v1::RandomTranslation&,
                                                                 const ImageShape&);
template std::unique_ptr<const Transform<uint8_t>> MakeCrop(const v1::RandomCrop&, const ImageShape&);
template std::unique_ptr<const Transform<float>> MakeCrop(const v1::RandomCrop&, const ImageShape&);

}  // namespace tandem
