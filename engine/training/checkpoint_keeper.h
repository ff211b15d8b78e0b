#ifndef TANDEM_ENGINE_TRAINING_CHECKPOINT_KEEPER_H_
#define TANDEM_ENGINE_TRAINING_CHECKPOINT_KEEPER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/random_access_env.h"
#include "engine/training/snapshot.h"
#include "engine/training/trainer.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Writes checkpoints, and the model with the best result, while training goes on: one after the other, on a
// thread of its own, from copies that the replicas give between two steps. A checkpoint that stands, and was
// read back, takes the place of those that are not to be kept. What cannot be written is told the observer,
// and training goes on. Thread-safe.
class CheckpointKeeper {
 public:
  struct Options {
    RandomAccessEnv* env = nullptr;
    // Empty: no checkpoint is written.
    std::string checkpoint_folder;
    // Which checkpoints are kept. Defaults filled in.
    v1::Checkpointing checkpoints;
    std::string best_path;
    int replicas = 1;
    // Writes the model with these variables, which had this result.
    std::function<absl::Status(const std::string& path, const Snapshot& snapshot, const v1::BestResult& best)>
        save_model;
    // Outlives it; may be null.
    TrainerObserver* observer = nullptr;
    const Clock* clock = nullptr;
    // Of the checkpoint that is there; 0 for none.
    int64_t last_step = 0;
  };
  explicit CheckpointKeeper(Options options);
  // Ends when what is being written is.
  ~CheckpointKeeper();
  CheckpointKeeper(const CheckpointKeeper&) = delete;
  CheckpointKeeper& operator=(const CheckpointKeeper&) = delete;

  // What is to be made of a snapshot.
  struct Purpose {
    bool checkpoint = false;
    bool best = false;
  };
  // Replica `rank` gives its variables: all replicas give theirs, for the same purpose, before one gives them
  // again. With the last of them all are handed over to be written, with what `state` then returns; while the
  // snapshot before is still being written, that waits.
  void Add(int rank, ReplicaVariables variables, Purpose purpose, const std::function<TrainingState()>& state)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns when nothing is being written.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

  // The step of the newest checkpoint that is durable; 0 for none.
  int64_t last_step() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Work {
    Snapshot snapshot;
    Purpose purpose;
    TrainingState state;
    absl::Duration since;
  };

  void WriteAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteCheckpoint(Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what is not to be kept beside the checkpoint of `step`, the newest, which stands; the best result
  // is of `best_step`.
  void RemoveOthers(int64_t step, int64_t best_step);
  bool MayWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || work_.has_value(); }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !busy_; }

  const Options options_;

  mutable Mutex mutex_;
  // As replicas give it.
  Snapshot gathered_ ABSL_GUARDED_BY(mutex_);
  int given_ ABSL_GUARDED_BY(mutex_) = 0;
  // For the thread to take.
  std::optional<Work> work_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // From when work_ is set until it is done.
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_CHECKPOINT_KEEPER_H_
