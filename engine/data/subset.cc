#include "engine/data/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/philox.h"

namespace tandem {

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {}

void Subset::Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const {
  auto* sample = static_cast<uint8_t*>(samples);
  auto* target = static_cast<uint8_t*>(targets);
  // Maps the indices in pieces, which needs no heap memory.
  constexpr size_t kPiece = 64;
  uint32_t mapped[kPiece];
  for (size_t begin = 0; begin < indices.size(); begin += kPiece) {
    const size_t count = std::min(kPiece, indices.size() - begin);
    for (size_t i = 0; i < count; ++i) mapped[i] = indices_[indices[begin + i]];
    whole_->Gather(absl::MakeConstSpan(mapped, count), sample, target);
    sample += count * whole_->sample_bytes();
    target += count * whole_->target_bytes();
  }
}

int64_t SplitSamples(int64_t samples, double fraction) {
  return std::clamp<int64_t>(std::llround(static_cast<double>(samples) * fraction), 1, samples - 1);
}

std::vector<uint32_t> RandomOrder(int64_t samples, uint64_t seed) {
  std::vector<uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, RandomPurpose::kValidationSplit, 0, 0);
  for (int64_t i = samples - 1; i > 0; --i) {
    std::swap(order[i], order[random.NextBelow(static_cast<uint32_t>(i + 1))]);
  }
  return order;
}

SplitIndices SplitAtRandom(int64_t samples, int64_t validation_samples, uint64_t seed) {
  const std::vector<uint32_t> order = RandomOrder(samples, seed);
  SplitIndices split;
  split.validation.assign(order.begin(), order.begin() + validation_samples);
  split.train.assign(order.begin() + validation_samples, order.end());
  std::sort(split.validation.begin(), split.validation.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

}  // namespace tandem
