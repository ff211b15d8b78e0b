#ifndef TANDEM_ENGINE_DATA_MEMORY_DATASET_H_
#define TANDEM_ENGINE_DATA_MEMORY_DATASET_H_

#include <cstdint>
#include <vector>

#include "engine/data/dataset.h"

namespace tandem {

// Samples and targets in memory, one after the other.
class MemoryDataset final : public Dataset {
 public:
  // `samples` and `targets` hold the same number of entries, of `sample_bytes` and `target_bytes` each.
  MemoryDataset(int64_t sample_bytes, std::vector<uint8_t> samples, int64_t target_bytes,
                std::vector<uint8_t> targets);

  int64_t size() const override { return size_; }
  int64_t sample_bytes() const override { return sample_bytes_; }
  int64_t target_bytes() const override { return target_bytes_; }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override;
  absl::Status GatherTargets(absl::Span<const uint32_t> indices, void* targets) const override;

 private:
  const int64_t sample_bytes_;
  const int64_t target_bytes_;
  const int64_t size_;
  const std::vector<uint8_t> samples_;
  const std::vector<uint8_t> targets_;
};

// Returns the bytes of `values`, as MemoryDataset holds them.
template <typename T>
std::vector<uint8_t> BytesOf(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
  return std::vector<uint8_t>(begin, begin + values.size() * sizeof(T));
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_MEMORY_DATASET_H_
