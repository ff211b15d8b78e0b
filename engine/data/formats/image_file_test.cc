#include "engine/data/formats/image_file.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/data/formats/test_jpeg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Returns a JPEG file of high quality in which each pixel differs from its neighbours.
std::string NoisyJpeg(JpegForm form, std::mt19937& random) {
  form.quality = 95;
  return Jpeg(form, [&random](int, std::vector<uint8_t>& pixels) {
    for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random());
  });
}

void AppendNumber(std::string& to, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

// Returns a little-endian TIFF file of 16-bit grey with the same row twice, in a strip or in a tile of 32
// x 16.
std::string GreyTiff16(const std::vector<uint16_t>& row, bool tiled, bool min_is_white) {
  std::string pixels;
  for (int y = 0; y < (tiled ? 16 : 2); ++y) {
    for (size_t x = 0; x < (tiled ? 32 : row.size()); ++x) {
      AppendNumber(pixels, x < row.size() ? row[x] : 0, 2);
    }
  }
  constexpr uint32_t kBegin = 8;
  const auto bytes = static_cast<uint32_t>(pixels.size());
  std::vector<std::pair<uint32_t, uint32_t>> tags = {
      {256, static_cast<uint32_t>(row.size())}, {257, 2}, {258, 16}, {259, 1}, {262, min_is_white ? 0 : 1}};
  if (tiled) {
    tags.insert(tags.end(), {{322, 32}, {323, 16}, {324, kBegin}, {325, bytes}});
  } else {
    tags.insert(tags.end(), {{273, kBegin}, {278, 2}, {279, bytes}});
  }
  std::string file = "II*";
  file.push_back('\0');
  AppendNumber(file, kBegin + bytes, 4);
  file += pixels;
  AppendNumber(file, static_cast<uint32_t>(tags.size()), 2);
  for (const auto& [tag, value] : tags) {
    AppendNumber(file, tag, 2);
    AppendNumber(file, 4, 2);  // The type of 32 bits.
    AppendNumber(file, 1, 4);
    AppendNumber(file, value, 4);
  }
  AppendNumber(file, 0, 4);
  return file;
}

// Expects that a sample from rows is the sample of the whole image.
void CheckSample(const std::string& file, const PictureForm& form) {
  SCOPED_TRACE(testing::Message() << "to " << form.channels << "x" << form.height << "x" << form.width
                                  << ", resize " << form.resize);
  const int64_t bytes = form.channels * form.height * form.width;
  std::vector<uint8_t> sample(bytes, 1), expected(bytes, 2);
  const absl::StatusOr<Image> image = DecodeImage(file);
  ASSERT_TRUE(image.ok()) << image.status();
  WriteSample(*image, form, expected.data());
  const absl::Status status = DecodeSample(file, form, sample.data());
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(sample == expected);
}

TEST(TiffTest, SixteenBitsOfGreyAreRounded) {
  std::vector<uint16_t> row;
  for (int i = 0; i < 20; ++i) row.push_back(static_cast<uint16_t>(3449 * i));
  for (const uint16_t edge : {127, 128, 129, 384, 386, 65535}) row.push_back(edge);
  for (const bool tiled : {false, true}) {
    for (const bool min_is_white : {false, true}) {
      const absl::StatusOr<Image> image = DecodeImage(GreyTiff16(row, tiled, min_is_white));
      ASSERT_TRUE(image.ok()) << image.status();
      ASSERT_EQ(image->channels, 1);
      ASSERT_EQ(image->pixels.size(), 2 * row.size());
      for (size_t i = 0; i < image->pixels.size(); ++i) {
        const uint16_t value = row[i % row.size()];
        const auto nearest = static_cast<int>(std::lround(value / 257.0));
        EXPECT_EQ(image->pixels[i], min_is_white ? 255 - nearest : nearest) << value << " " << tiled;
      }
    }
  }
}

TEST(ImageFileTest, RowsOfJpegGiveTheBitsOfTheWholeImage) {
  std::mt19937 random(5);
  const auto draw = [&random](int most) { return 1 + static_cast<int>(random() % most); };
  for (int i = 0; i < 250; ++i) {
    JpegForm jpeg = {.width = draw(i % 2 == 0 ? 40 : 300), .height = draw(i % 3 == 0 ? 200 : 50)};
    jpeg.channels = i % 7 == 0 ? 1 : i % 7 == 1 ? 4 : 3;
    jpeg.across = std::vector<int>{1, 2, 2, 4}[random() % 4];
    jpeg.down = jpeg.across == 4 ? 1 : draw(2);
    jpeg.chroma_across = i % 8 == 3 ? 2 : 1;
    jpeg.progressive = i % 5 == 0;
    const int orientation = i % 4 == 0 ? draw(8) : 1;
    jpeg.exif = OrientationExif(orientation);
    SCOPED_TRACE(testing::Message() << jpeg.width << "x" << jpeg.height << "x" << jpeg.channels << ", "
                                    << jpeg.across << "x" << jpeg.down << ", chroma " << jpeg.chroma_across
                                    << ", progressive " << jpeg.progressive << ", orientation "
                                    << orientation);
    const std::string file = NoisyJpeg(jpeg, random);
    for (const v1::ImageResize resize :
         {v1::IMAGE_RESIZE_STRETCH, v1::IMAGE_RESIZE_CROP, v1::IMAGE_RESIZE_PAD}) {
      // Also larger than the image.
      const PictureForm form = {
          .channels = i % 6 == 0 ? 1 : 3, .height = draw(60), .width = draw(60), .resize = resize};
      ASSERT_NO_FATAL_FAILURE(CheckSample(file, form));
    }
    ASSERT_NO_FATAL_FAILURE(CheckSample(file, {.channels = 3, .height = jpeg.height, .width = jpeg.width}));
  }
}

TEST(ImageFileTest, RowsOfADamagedJpegAreRefused) {
  std::mt19937 random(6);
  const std::string file = NoisyJpeg({.width = 200, .height = 100}, random);
  // The needed part of the image is whole in the longest file.
  const PictureForm form = {.channels = 3, .height = 8, .width = 4, .resize = v1::IMAGE_RESIZE_CROP};
  std::vector<uint8_t> sample(3 * 8 * 4);
  for (const double part : {0.01, 0.3, 0.7, 0.99}) {
    const std::string cut = file.substr(0, static_cast<size_t>(static_cast<double>(file.size()) * part));
    EXPECT_THAT(DecodeSample(cut, form, sample.data()).message(), HasSubstr("cannot be decoded as JPEG"));
  }
  EXPECT_THAT(DecodeSample("some text", form, sample.data()).message(), HasSubstr("is no picture"));
  // The next image of the thread is not disturbed.
  CheckSample(file, form);
}

// No memory can hold so many rows, so the sample's preparation throws after the decoding has begun.
TEST(ImageFileTest, AnExceptionInMidPictureLosesNoMemoryOfJpeg) {
  std::mt19937 random(8);
  const std::string file = NoisyJpeg({.width = 64, .height = 64, .across = 2, .down = 2}, random);
  uint8_t sample[3] = {};
  const auto decode = [&] {
    EXPECT_THROW(
        DecodeSample(file, {.channels = 3, .height = int64_t{1} << 59, .width = 1}, sample).IgnoreError(),
        std::length_error);
  };
  decode();
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 200; ++i) decode();
  // A decompressor has more than 16 KB.
  EXPECT_LT(mallinfo2().uordblks, before + (size_t{1} << 20));
  CheckSample(file, {.channels = 3, .height = 8, .width = 8});
}

// Returns the largest memory of this process so far.
int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

TEST(ImageFileTest, HoldsFewRowsOfAJpeg) {
  const std::string file = Jpeg({.width = 4000, .height = 3000});
  std::vector<uint8_t> sample(3 * 64 * 64);
  const int64_t before = PeakBytes();
  ASSERT_TRUE(DecodeSample(file, {.channels = 3, .height = 64, .width = 64}, sample.data()).ok());
  EXPECT_LT(PeakBytes() - before, 8 << 20);
  // The whole image takes 36 MB.
  ASSERT_TRUE(DecodeImage(file).ok());
  EXPECT_GT(PeakBytes() - before, 30 << 20);
}

}  // namespace
}  // namespace tandem
