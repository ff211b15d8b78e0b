#include "engine/graph/ops/augmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// Returns the place where pixel `i` of a line of `n` is read, or -1 for a zero.
int64_t FillIndex(int64_t i, int64_t n, ImageFill fill) {
  if (i >= 0 && i < n) return i;
  if (fill == ImageFill::kZero) return -1;
  if (fill == ImageFill::kEdge) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  const int64_t period = 2 * n - 2;
  const int64_t within = ((i % period) + period) % period;
  return within < n ? within : period - within;
}

// Bytes of images with their random numbers.
class Augmented {
 public:
  explicit Augmented(const KernelCall& call)
      : shape_(call.inputs[0]->shape()),
        column_(call.op<AugmentOp>().column),
        x_(call.inputs[0]->data<uint8_t>()),
        drawn_(Numbers(call.inputs[1])),
        columns_(call.inputs[1]->shape()[1]),
        y_(call.outputs[0]->data<uint8_t>()) {}

  int64_t height() const { return shape_[2]; }
  int64_t width() const { return shape_[3]; }
  int64_t elements() const { return shape_[1] * height() * width(); }  // Of an image.

  double Drawn(int64_t image, int64_t i) const { return drawn_[image * columns_ + column_ + i]; }
  const uint8_t* Image(int64_t image) const { return &x_[image * elements()]; }

  // Sets each byte of images of three channels to colour(image, red, green, blue)[its channel].
  template <typename Colour>
  absl::Status EachColour(const Colour& colour) const {
    const int64_t area = height() * width();
    for (int64_t n = 0; n < shape_[0]; ++n) {
      for (int64_t i = n * elements(); i < n * elements() + area; ++i) {
        const std::array<float, 3> changed = colour(n, x_[i], x_[i + area], x_[i + 2 * area]);
        for (int64_t c = 0; c < 3; ++c) {
          y_[i + c * area] = static_cast<uint8_t>(std::clamp(changed[c], 0.0F, 255.0F) + 0.5F);
        }
      }
    }
    return absl::OkStatus();
  }

  // Sets each byte to pixel(image, its plane, row, column).
  template <typename Pixel>
  absl::Status Each(const Pixel& pixel) const {
    for (int64_t n = 0; n < shape_[0]; ++n) {
      for (int64_t c = 0; c < shape_[1]; ++c) {
        const int64_t first = (n * shape_[1] + c) * height() * width();
        for (int64_t row = 0; row < height(); ++row) {
          for (int64_t column = 0; column < width(); ++column) {
            y_[first + row * width() + column] = pixel(n, &x_[first], row, column);
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // Returns the byte at a place that may be outside.
  uint8_t At(const uint8_t* plane, int64_t row, int64_t column, ImageFill fill) const {
    const int64_t from_row = FillIndex(row, height(), fill);
    const int64_t from_column = FillIndex(column, width(), fill);
    return from_row < 0 || from_column < 0 ? 0 : plane[from_row * width() + from_column];
  }

 private:
  const Shape& shape_;
  const int64_t column_;
  const absl::Span<const uint8_t> x_;
  const absl::Span<const double> drawn_;
  const int64_t columns_;
  const absl::Span<uint8_t> y_;
};

}  // namespace

absl::Status GatherSamples(const KernelCall& call) {
  const absl::Span<const int32_t> indices = call.inputs[0]->data<int32_t>();
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& data = *call.inputs[1 + i];
    const int64_t samples = data.shape()[0];
    const int64_t bytes = samples == 0 ? 0 : data.bytes() / samples;
    const auto* from = static_cast<const std::byte*>(data.raw_data());
    auto* to = static_cast<std::byte*>(call.outputs[i]->raw_data());
    for (const int32_t index : indices) {
      if (index < 0 || index >= samples) return absl::OutOfRangeError("gather_samples: no such sample");
      std::memcpy(to, from + index * bytes, bytes);
      to += bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status FlipImages(const KernelCall& call) {
  const Augmented images(call);
  const bool vertical = call.op<FlipImagesOp>().vertical;
  return images.Each([&](int64_t n, const uint8_t* plane, int64_t row, int64_t column) {
    if (images.Drawn(n, 0) != 0) {
      row = vertical ? images.height() - 1 - row : row;
      column = vertical ? column : images.width() - 1 - column;
    }
    return plane[row * images.width() + column];
  });
}

absl::Status TranslateImages(const KernelCall& call) {
  const Augmented images(call);
  const ImageFill fill = call.op<TranslateImagesOp>().fill;
  return images.Each([&](int64_t n, const uint8_t* plane, int64_t row, int64_t column) {
    const auto right = static_cast<int64_t>(images.Drawn(n, 0));
    const auto down = static_cast<int64_t>(images.Drawn(n, 1));
    return images.At(plane, row - down, column - right, fill);
  });
}

absl::Status ResampleImages(const KernelCall& call) {
  const Augmented images(call);
  const ImageFill fill = call.op<ResampleImagesOp>().fill;
  const double centre_x = 0.5 * static_cast<double>(images.width() - 1);
  const double centre_y = 0.5 * static_cast<double>(images.height() - 1);
  return images.Each([&](int64_t n, const uint8_t* plane, int64_t row, int64_t column) {
    const double x = static_cast<double>(column) - centre_x;
    const double y = static_cast<double>(row) - centre_y;
    const double at_x = images.Drawn(n, 0) * x + images.Drawn(n, 1) * y + centre_x;
    const double at_y = images.Drawn(n, 2) * x + images.Drawn(n, 3) * y + centre_y;
    const auto left = static_cast<int64_t>(std::floor(at_x));
    const auto top = static_cast<int64_t>(std::floor(at_y));
    const auto part_x = static_cast<float>(at_x - std::floor(at_x));
    const auto part_y = static_cast<float>(at_y - std::floor(at_y));
    const auto at = [&](int64_t from_row, int64_t from_column) {
      return static_cast<float>(images.At(plane, from_row, from_column, fill));
    };
    const float upper = at(top, left) * (1 - part_x) + at(top, left + 1) * part_x;
    const float lower = at(top + 1, left) * (1 - part_x) + at(top + 1, left + 1) * part_x;
    return static_cast<uint8_t>(upper * (1 - part_y) + lower * part_y + 0.5F);
  });
}

absl::Status EraseImages(const KernelCall& call) {
  const Augmented images(call);
  return images.Each([&](int64_t n, const uint8_t* plane, int64_t row, int64_t column) {
    const auto x = static_cast<double>(column);
    const auto y = static_cast<double>(row);
    const bool erased = x >= images.Drawn(n, 0) && x < images.Drawn(n, 1) && y >= images.Drawn(n, 2) &&
                        y < images.Drawn(n, 3);
    return erased ? uint8_t{0} : plane[row * images.width() + column];
  });
}

absl::Status SpreadImages(const KernelCall& call) {
  const Augmented images(call);
  const bool about_mean = call.op<SpreadImagesOp>().about_mean;
  return images.Each([&](int64_t n, const uint8_t* plane, int64_t row, int64_t column) {
    float mean = 0;
    if (about_mean) {
      int64_t sum = 0;
      for (int64_t i = 0; i < images.elements(); ++i) sum += images.Image(n)[i];
      mean = static_cast<float>(static_cast<double>(sum) / static_cast<double>(images.elements()));
    }
    const auto factor = static_cast<float>(images.Drawn(n, 0));
    const float spread = mean + factor * (static_cast<float>(plane[row * images.width() + column]) - mean);
    return static_cast<uint8_t>(std::clamp(spread, 0.0F, 255.0F) + 0.5F);
  });
}

absl::Status EnlargeImages(const KernelCall& call) {
  const Augmented images(call);
  return images.Each([&](int64_t n, const uint8_t* plane, int64_t row, int64_t column) {
    // The old pixels between which a new pixel lies, and the second one's weight.
    struct Pair {
      int64_t first, second;
      float part;
    };
    const auto pair_at = [](int64_t i, double begin, double size, int64_t count) {
      const double centre = (static_cast<double>(i) + 0.5) * (size / static_cast<double>(count)) - 0.5;
      const double at = std::clamp(centre, 0.0, size - 1);
      const double first = std::floor(at);
      return Pair{static_cast<int64_t>(begin + first),
                  static_cast<int64_t>(begin + std::min(first + 1, size - 1)),
                  static_cast<float>(at - first)};
    };
    const Pair x = pair_at(column, images.Drawn(n, 0), images.Drawn(n, 2), images.width());
    const Pair y = pair_at(row, images.Drawn(n, 1), images.Drawn(n, 3), images.height());
    const auto across = [&](int64_t from_row) {
      const uint8_t* line = plane + from_row * images.width();
      return static_cast<float>(line[x.first]) * (1 - x.part) + static_cast<float>(line[x.second]) * x.part;
    };
    return static_cast<uint8_t>(across(y.first) * (1 - y.part) + across(y.second) * y.part + 0.5F);
  });
}

absl::Status SaturateImages(const KernelCall& call) {
  const Augmented images(call);
  return images.EachColour([&](int64_t n, float red, float green, float blue) {
    const auto factor = static_cast<float>(images.Drawn(n, 0));
    const float grey = 0.299F * red + 0.587F * green + 0.114F * blue;
    const auto mixed = [&](float x) { return factor * x + (1 - factor) * grey; };
    return std::array<float, 3>{mixed(red), mixed(green), mixed(blue)};
  });
}

absl::Status ShiftHues(const KernelCall& call) {
  const Augmented images(call);
  return images.EachColour([&](int64_t n, float red, float green, float blue) {
    const float most = std::max({red, green, blue}), least = std::min({red, green, blue});
    const float chroma = most - least;
    if (chroma == 0) return std::array<float, 3>{red, green, blue};
    float hue = 0;
    if (most == red) {
      hue = (green - blue) / chroma;
    } else if (most == green) {
      hue = 2 + (blue - red) / chroma;
    } else {
      hue = 4 + (red - green) / chroma;
    }
    hue += static_cast<float>(6 * images.Drawn(n, 0));
    if (hue < 0) hue += 6;
    if (hue >= 6) hue -= 6;
    const auto number = [&](float share) { return least + chroma * std::clamp(share, 0.0F, 1.0F); };
    return std::array<float, 3>{number(std::abs(hue - 3) - 1), number(2 - std::abs(hue - 2)),
                                number(2 - std::abs(hue - 4))};
  });
}

}  // namespace tandem::reference
