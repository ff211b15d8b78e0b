#include "engine/data/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/philox.h"
#include "engine/base/status_macros.h"

namespace tandem {

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {}

absl::Status Subset::ForPieces(
    absl::Span<const uint32_t> indices,
    absl::FunctionRef<absl::Status(absl::Span<const uint32_t> mapped, int64_t done)> gather) const {
  // Maps the indices in pieces, which needs no heap memory.
  constexpr size_t kPiece = 64;
  uint32_t mapped[kPiece];
  for (size_t begin = 0; begin < indices.size(); begin += kPiece) {
    const size_t count = std::min(kPiece, indices.size() - begin);
    for (size_t i = 0; i < count; ++i) mapped[i] = indices_[indices[begin + i]];
    TANDEM_RETURN_IF_ERROR(gather(absl::MakeConstSpan(mapped, count), static_cast<int64_t>(begin)));
  }
  return absl::OkStatus();
}

absl::Status Subset::Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const {
  return ForPieces(indices, [&](absl::Span<const uint32_t> mapped, int64_t done) {
    return whole_->Gather(mapped, static_cast<uint8_t*>(samples) + done * whole_->sample_bytes(),
                          static_cast<uint8_t*>(targets) + done * whole_->target_bytes());
  });
}

absl::Status Subset::GatherTargets(absl::Span<const uint32_t> indices, void* targets) const {
  return ForPieces(indices, [&](absl::Span<const uint32_t> mapped, int64_t done) {
    return whole_->GatherTargets(mapped, static_cast<uint8_t*>(targets) + done * whole_->target_bytes());
  });
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
