#ifndef TANDEM_ENGINE_DATA_SUBSET_H_
#define TANDEM_ENGINE_DATA_SUBSET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/dataset.h"

namespace tandem {

// Some samples of another data set, in an order of its own.
class Subset final : public Dataset {
 public:
  // Sample i is `whole`'s sample indices[i].
  Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> indices);

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t sample_bytes() const override { return whole_->sample_bytes(); }
  int64_t target_bytes() const override { return whole_->target_bytes(); }
  void Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override;

 private:
  const std::shared_ptr<const Dataset> whole_;
  const std::vector<uint32_t> indices_;
};

// How many of `samples`, at least 2, a validation split of the given fraction takes: the nearest number, and
// at least one, and not all.
int64_t SplitSamples(int64_t samples, double fraction);

// The indices of the samples that a split takes for training and for validation, each in rising order: which
// they are follows from `seed` and the two numbers alone.
struct SplitIndices {
  std::vector<uint32_t> train;
  std::vector<uint32_t> validation;
};
SplitIndices SplitAtRandom(int64_t samples, int64_t validation_samples, uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SUBSET_H_
