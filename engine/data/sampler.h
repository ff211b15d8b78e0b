#ifndef TANDEM_ENGINE_DATA_SAMPLER_H_
#define TANDEM_ENGINE_DATA_SAMPLER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "engine/base/mutex.h"

namespace tandem {

// The order in which an epoch takes the samples: a permutation that follows from the seed and the epoch alone
// (Fisher and Yates 1938, with Philox numbers), so it is the same for any number of replicas.
std::vector<uint32_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch);

// Which samples each replica takes at each step of each epoch: the epoch's order is cut into batches, and
// each batch into the replicas' shares, one behind the other. Thread-safe.
class Sampler {
 public:
  struct Options {
    int64_t samples = 0;        // In the data set; at least 1.
    int64_t batch = 0;          // In a global batch; at least 1. The last one of an epoch may be smaller.
    std::vector<double> loads;  // One a replica; see DealSamples.
    bool shuffle = false;
    uint64_t seed = 0;
    // Leaves out what fills no whole batch at the end of an epoch; a batch larger than the data is the data.
    bool drop_last = false;
  };
  // Order and position of one replica's samples.
  struct Share {
    std::shared_ptr<const std::vector<uint32_t>> order;
    int64_t begin = 0;
    int64_t count = 0;
    absl::Span<const uint32_t> indices() const { return absl::MakeConstSpan(*order).subspan(begin, count); }
  };

  explicit Sampler(Options options);

  int64_t steps_per_epoch() const { return steps_; }
  // Of all replicas in an epoch.
  int64_t epoch_samples() const { return (steps_ - 1) * full_ + last_; }
  // Samples of all replicas at a step, counted from 0 in its epoch.
  int64_t BatchSamples(int64_t step) const { return step + 1 < steps_ ? full_ : last_; }
  // Samples of one replica at a step.
  int64_t ShareSamples(int64_t step, int rank) const { return Counts(step)[rank]; }
  // The place in the whole batch of the first of them.
  int64_t ShareFirst(int64_t step, int rank) const;
  // The samples of one replica at a step of an epoch, which counts from 1.
  Share ShareOf(int64_t epoch, int64_t step, int rank) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::vector<int64_t>& Counts(int64_t step) const {
    return step + 1 < steps_ ? full_counts_ : last_counts_;
  }

  const Options options_;
  const int64_t full_;  // Samples of each batch but the last.
  const int64_t steps_;
  const int64_t last_;  // Samples of the last batch.
  const std::vector<int64_t> full_counts_;
  const std::vector<int64_t> last_counts_;
  Mutex mutex_;
  // The newest epochs' orders: replicas may stand in different ones.
  std::map<int64_t, std::shared_ptr<const std::vector<uint32_t>>> orders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SAMPLER_H_
