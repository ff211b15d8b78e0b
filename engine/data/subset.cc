#include "engine/data/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
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

SplitIndices SplitStratified(absl::Span<const int32_t> labels, int64_t validation_samples, uint64_t seed) {
  const auto samples = static_cast<int64_t>(labels.size());
  // Numbers the classes in the order of their first samples.
  absl::flat_hash_map<int32_t, size_t> numbers;
  std::vector<int64_t> sizes;
  for (const int32_t label : labels) {
    const auto [found, is_new] = numbers.try_emplace(label, sizes.size());
    if (is_new) sizes.push_back(0);
    ++sizes[found->second];
  }
  // Each class gives the whole part of its share. The classes with the largest rests give a sample more, of
  // equal rests the larger class.
  std::vector<int64_t> quotas;
  // Rest, in parts of a sample, and size. Exact, so that equal rests are equal.
  std::vector<std::tuple<int64_t, int64_t, size_t>> rests;
  for (size_t i = 0; i < sizes.size(); ++i) {
    quotas.push_back(sizes[i] * validation_samples / samples);
    rests.emplace_back(sizes[i] * validation_samples % samples, sizes[i], i);
  }
  std::sort(rests.rbegin(), rests.rend());
  const int64_t left = validation_samples - std::accumulate(quotas.begin(), quotas.end(), int64_t{0});
  for (int64_t i = 0; i < left; ++i) ++quotas[std::get<size_t>(rests[i])];
  SplitIndices split;
  for (const uint32_t sample : RandomOrder(samples, seed)) {
    int64_t& quota = quotas[numbers.at(labels[sample])];
    (quota > 0 ? split.validation : split.train).push_back(sample);
    if (quota > 0) --quota;
  }
  std::sort(split.validation.begin(), split.validation.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
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
