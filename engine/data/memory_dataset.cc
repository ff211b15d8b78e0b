#include "engine/data/memory_dataset.h"

#include <cassert>
#include <cstring>
#include <utility>

namespace tandem {

MemoryDataset::MemoryDataset(int64_t sample_bytes, std::vector<uint8_t> samples, int64_t target_bytes,
                             std::vector<uint8_t> targets)
    : sample_bytes_(sample_bytes),
      target_bytes_(target_bytes),
      size_(static_cast<int64_t>(targets.size()) / target_bytes),
      samples_(std::move(samples)),
      targets_(std::move(targets)) {
  assert(static_cast<int64_t>(samples_.size()) == size_ * sample_bytes_);
}

absl::Status MemoryDataset::Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const {
  auto* sample = static_cast<uint8_t*>(samples);
  for (const uint32_t index : indices) {
    std::memcpy(sample, samples_.data() + index * sample_bytes_, sample_bytes_);
    sample += sample_bytes_;
  }
  return GatherTargets(indices, targets);
}

absl::Status MemoryDataset::GatherTargets(absl::Span<const uint32_t> indices, void* targets) const {
  auto* target = static_cast<uint8_t*>(targets);
  for (const uint32_t index : indices) {
    std::memcpy(target, targets_.data() + index * target_bytes_, target_bytes_);
    target += target_bytes_;
  }
  return absl::OkStatus();
}

}  // namespace tandem
