// Measures the random changes of samples, on one core.
//
//   augment_bench            prints a table of nanoseconds a pixel of 224x224 pictures in red, green and blue

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/augment/augmenter.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

constexpr int64_t kSide = 224;
constexpr int kPictures = 32;
constexpr int kRounds = 7;

constexpr const char* kChanges[] = {
    "",
    "horizontal_flip {}",
    "crop { padding: 4 }",
    "rotation { degrees: 10 }",
    "scale { min: 0.8 max: 1.2 }",
    "brightness { strength: 0.4 }",
    "contrast { strength: 0.4 }",
    "resized_crop {}",
    "saturation { strength: 0.4 }",
    "hue { strength: 0.1 }",
};

// Returns the seconds of the fastest round, or infinity if the samples have another type.
double BestSeconds(const std::string& change, SampleType type) {
  Augmentations augmentations;
  if (!change.empty() && !google::protobuf::TextFormat::ParseFromString(change, augmentations.Add())) {
    std::abort();
  }
  DatasetInfo info;
  info.shape = Shape({3, kSide, kSide});
  info.sample_type = type;
  info.classes = 1;
  double best = std::numeric_limits<double>::infinity();
  if (!CheckAugmentation(augmentations, info).ok()) return best;
  const int64_t bytes = info.shape.elements() * SizeOf(DTypeOfSamples(type));
  std::vector<uint8_t> samples(bytes * kPictures, 0);
  uint32_t noise = 1;
  for (int64_t i = 0; i < info.shape.elements() * kPictures; ++i) {
    noise = noise * 1664525U + 1013904223U;
    const auto byte = static_cast<uint8_t>(noise >> 24);
    if (type == SampleType::kBytes) {
      samples[i] = byte;
    } else {
      reinterpret_cast<float*>(samples.data())[i] = static_cast<float>(byte) / 255;
    }
  }
  const std::unique_ptr<const Dataset> augmented =
      Augment(std::make_unique<MemoryDataset>(bytes, std::move(samples), sizeof(int32_t),
                                              std::vector<uint8_t>(sizeof(int32_t) * kPictures)),
              augmentations, info, 1);
  std::vector<uint32_t> indices(kPictures);
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<uint8_t> batch(bytes * kPictures);
  std::vector<int32_t> targets(kPictures);
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    // Each round makes the same changes.
    if (!augmented->GatherEpoch(1, indices, batch.data(), targets.data()).ok()) std::abort();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace
}  // namespace tandem

int main() {
  std::printf("| change | bytes, ns a pixel | floats, ns a pixel |\n| --- | ---: | ---: |\n");
  for (const char* change : tandem::kChanges) {
    std::printf("| %s |", *change == '\0' ? "none: a copy" : change);
    for (const tandem::SampleType type : {tandem::SampleType::kBytes, tandem::SampleType::kFloats}) {
      const double pixels = static_cast<double>(tandem::kPictures) * tandem::kSide * tandem::kSide;
      const double seconds = tandem::BestSeconds(change, type);
      if (std::isinf(seconds)) {
        std::printf(" refused |");
      } else {
        std::printf(" %.2f |", seconds / pixels * 1e9);
      }
    }
    std::printf("\n");
  }
  return 0;
}
