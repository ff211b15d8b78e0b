// Compares the preparation of pictures for training with bare decoding by libjpeg-turbo, on one core: reading
// from memory, decoding, scaling to 64x64, and a random crop with a flip.
//
//   picture_bench            prints a table; a ratio of 0.9 means that preparation has 90 % of the bare speed
//
// "scaled" is the part of the preparation before the crop and the flip: decoding and scaling into memory that
// is used again.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Needs <cstdio> before it, because it does not include it.
#include <jpeglib.h>

#include "engine/data/augment/augmenter.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/test_jpeg.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

constexpr int64_t kSide = 64;
constexpr PictureForm kForm = {
    .channels = 3, .height = kSide, .width = kSide, .resize = v1::IMAGE_RESIZE_CROP};
constexpr int kPictures = 8;
constexpr int kRounds = 7;

// Returns a picture of waves and some noise, which compresses like a photograph.
std::string MakeJpeg(int width, int height, int number) {
  uint32_t noise = number + 1;
  return Jpeg({.width = width, .height = height, .quality = 90}, [&](int y, std::vector<uint8_t>& pixels) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        noise = noise * 1664525U + 1013904223U;
        const double wave = std::sin(0.011 * (x + 90 * c) * (1 + number % 3)) +
                            std::cos(0.017 * (y + 40 * c)) + 0.5 * std::sin(0.13 * (x + y));
        pixels[3 * x + c] = static_cast<uint8_t>(std::clamp(128 + 45 * wave + (noise >> 28), 0.0, 255.0));
      }
    }
  });
}

// Decodes to red, green and blue, as plainly as libjpeg can.
void DecodeBare(const std::string& file, std::vector<uint8_t>* pixels) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  pixels->resize(int64_t{3} * info.output_height * info.output_width);
  while (info.output_scanline < info.output_height) {
    JSAMPROW rows[1] = {pixels->data() + int64_t{3} * info.output_scanline * info.output_width};
    jpeg_read_scanlines(&info, rows, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

template <typename Function>
double Seconds(const Function& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Decodes, scales and augments the pictures. Returns a sum over the samples, so that nothing is left out.
int64_t Prepare(const std::vector<std::string>& files, const Augmentations& augmentations,
                const DatasetInfo& info) {
  const int64_t bytes = info.shape.elements();
  std::vector<uint8_t> samples(bytes * static_cast<int64_t>(files.size()));
  std::vector<uint8_t> labels(sizeof(int32_t) * files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    uint8_t* const sample = samples.data() + static_cast<int64_t>(i) * bytes;
    if (!DecodeSample(files[i], kForm, sample).ok()) std::abort();
  }
  const std::unique_ptr<const Dataset> augmented =
      Augment(std::make_unique<MemoryDataset>(bytes, std::move(samples), sizeof(int32_t), std::move(labels)),
              augmentations, info, 1);
  int64_t sum = 0;
  std::vector<uint32_t> indices(files.size());
  for (size_t i = 0; i < files.size(); ++i) indices[i] = static_cast<uint32_t>(i);
  std::vector<uint8_t> batch(bytes * static_cast<int64_t>(files.size()));
  std::vector<int32_t> targets(files.size());
  if (!augmented->GatherEpoch(1, indices, batch.data(), targets.data()).ok()) std::abort();
  for (const uint8_t byte : batch) sum += byte;
  return sum;
}

}  // namespace
}  // namespace tandem

int main() {
  tandem::Augmentations augmentations;
  augmentations.Add()->mutable_crop()->set_padding(4);
  augmentations.Add()->mutable_horizontal_flip();
  tandem::DatasetInfo info;
  info.shape = tandem::Shape({3, tandem::kSide, tandem::kSide});
  info.classes = 1;
  std::printf("| picture | bare, pictures/s | scaled, pictures/s | prepared, pictures/s | ratio |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: |\n");
  for (const auto& [width, height] : {std::pair(160, 120), std::pair(640, 480), std::pair(4032, 3024)}) {
    std::vector<std::string> files;
    for (int i = 0; i < tandem::kPictures; ++i) files.push_back(tandem::MakeJpeg(width, height, i));
    std::vector<uint8_t> pixels, sample(info.shape.elements());
    double bare = std::numeric_limits<double>::infinity(), scaled = bare, prepared = bare;
    const int repeats = std::max(1, 4'000'000 / (width * height));
    // In turns, so that other work on the machine slows all of them.
    for (int round = 0; round < tandem::kRounds; ++round) {
      bare = std::min(bare, tandem::Seconds([&] {
                        for (int i = 0; i < repeats; ++i) {
                          for (const std::string& file : files) tandem::DecodeBare(file, &pixels);
                        }
                      }));
      scaled = std::min(scaled, tandem::Seconds([&] {
                          for (int i = 0; i < repeats; ++i) {
                            for (const std::string& file : files) {
                              if (!tandem::DecodeSample(file, tandem::kForm, sample.data()).ok())
                                std::abort();
                            }
                          }
                        }));
      prepared = std::min(prepared, tandem::Seconds([&] {
                            for (int i = 0; i < repeats; ++i) {
                              if (tandem::Prepare(files, augmentations, info) == 0) std::abort();
                            }
                          }));
    }
    const double count = static_cast<double>(repeats) * tandem::kPictures;
    std::printf("| %dx%d | %.1f | %.1f | %.1f | %.2f |\n", width, height, count / bare, count / scaled,
                count / prepared, bare / prepared);
  }
  return 0;
}
