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

// Returns the order of the samples in an epoch: a permutation that depends on the seed and the epoch alone,
// and not on replicas (Fisher and Yates 1938, with Philox numbers).
std::vector<uint32_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch);

// Returns the order of samples in shards in an epoch. The shards have the samples up to `ends`, which ascend
// and are not empty. They follow each other in a random order. A buffer holds the next `buffer` samples, at
// least 1. Each next sample of the order is a random sample of the buffer, and the shards' next sample takes
// its place. The order depends on the arguments alone.
std::vector<uint32_t> ShardedOrder(const std::vector<int64_t>& ends, int64_t buffer, uint64_t seed,
                                   int64_t epoch);

// The samples of each class that has any, in the order of the classes.
using ClassSamples = std::vector<std::vector<uint32_t>>;

// Returns the order of the samples in an epoch of `samples` samples in which all classes are equally
// frequent. Each class has the rounded-up or the rounded-down share of the epoch; epochs take turns. A class
// with fewer samples than its share repeats all of them equally often, except for a random remainder without
// repetition. The order depends on the arguments alone. `classes` has at least one class.
std::vector<uint32_t> BalancedOrder(const ClassSamples& classes, int64_t samples, uint64_t seed,
                                    int64_t epoch);

// Assigns samples to each replica at each step of each epoch. It cuts the epoch's order into batches, and
// each batch into the replicas' shares, one after the other. Thread-safe.
class Sampler {
 public:
  struct Options {
    int64_t samples = 0;        // In the data set; at least 1.
    int64_t batch = 0;          // In a global batch; at least 1. An epoch's last batch may be smaller.
    std::vector<double> loads;  // An entry for each replica. See DealSamples.
    bool shuffle = false;
    // If given and without `classes`, shuffled epochs have ShardedOrder of shard_ends and shuffle_buffer.
    std::vector<int64_t> shard_ends = {};
    int64_t shuffle_buffer = 0;
    // If given, shuffled epochs have BalancedOrder of these. May be shared by samplers.
    std::shared_ptr<const ClassSamples> classes = nullptr;
    uint64_t seed = 0;
    // Drops an incomplete batch at the end of an epoch. A batch larger than the data becomes the data.
    bool drop_last = false;
  };
  // The order and the position of a replica's samples.
  struct Share {
    std::shared_ptr<const std::vector<uint32_t>> order;
    int64_t begin = 0;
    int64_t count = 0;
    absl::Span<const uint32_t> indices() const { return absl::MakeConstSpan(*order).subspan(begin, count); }
  };

  explicit Sampler(Options options);

  int64_t steps_per_epoch() const { return steps_; }
  // Returns the samples of all replicas in an epoch.
  int64_t epoch_samples() const { return (steps_ - 1) * full_ + last_; }
  // Returns the samples of all replicas at a step, counted from 0 in its epoch.
  int64_t BatchSamples(int64_t step) const { return step + 1 < steps_ ? full_ : last_; }
  // Returns the number of a replica's samples at a step.
  int64_t ShareSamples(int64_t step, int rank) const { return Counts(step)[rank]; }
  // Returns the place of a replica's first sample in the whole batch.
  int64_t ShareFirst(int64_t step, int rank) const;
  // Returns the samples of a replica at a step of an epoch. Epochs count from 1.
  Share ShareOf(int64_t epoch, int64_t step, int rank) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<uint32_t> OrderOf(int64_t epoch) const;
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
  // The orders of the newest epochs. Replicas may be in different epochs. Without shuffling, only key 0.
  std::map<int64_t, std::shared_ptr<const std::vector<uint32_t>>> orders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SAMPLER_H_
