#ifndef TANDEM_ENGINE_DATA_SUBSET_H_
#define TANDEM_ENGINE_DATA_SUBSET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/data/dataset.h"

namespace tandem {

// Some samples of another data set, in their own order.
class Subset final : public Dataset {
 public:
  // Sample i is `whole`'s sample indices[i].
  Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> indices);

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t sample_bytes() const override { return whole_->sample_bytes(); }
  int64_t target_bytes() const override { return whole_->target_bytes(); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override;
  absl::Status GatherTargets(absl::Span<const uint32_t> indices, void* targets) const override;

 private:
  // Calls `gather` with pieces of `indices`, as indices of `whole_`, and with the number of indices before
  // the piece.
  absl::Status ForPieces(
      absl::Span<const uint32_t> indices,
      absl::FunctionRef<absl::Status(absl::Span<const uint32_t> mapped, int64_t done)> gather) const;

  const std::shared_ptr<const Dataset> whole_;
  const std::vector<uint32_t> indices_;
};

// Returns the size of a validation split of `samples`, at least 2, with the given fraction. It is the nearest
// number that leaves a sample in each split.
int64_t SplitSamples(int64_t samples, double fraction);

// Returns the numbers below `samples` in a random order for splits, which depends on the arguments alone.
std::vector<uint32_t> RandomOrder(int64_t samples, uint64_t seed);

// The indices of a split's training and validation samples, each ascending. They depend on `seed` and the two
// numbers alone.
struct SplitIndices {
  std::vector<uint32_t> train;
  std::vector<uint32_t> validation;
};
SplitIndices SplitAtRandom(int64_t samples, int64_t validation_samples, uint64_t seed);
// As SplitAtRandom, but each class has the same share of validation samples, as nearly as whole samples
// allow. If two classes have an equal claim to one more validation sample, the larger class gives it.
// `labels` has each sample's class. The split does not depend on how the classes are numbered.
SplitIndices SplitStratified(absl::Span<const int32_t> labels, int64_t validation_samples, uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SUBSET_H_
