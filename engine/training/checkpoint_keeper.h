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

// Writes checkpoints, and the model with the best result, during training. It writes from copies of the
// replicas' state between two steps, one checkpoint after the other, on its own thread. It reads each new
// checkpoint back before it removes old checkpoints. If a write fails, it notifies the observer, and training
// continues. Thread-safe.
class CheckpointKeeper {
 public:
  struct Options {
    RandomAccessEnv* env = nullptr;
    // Must be given if a Purpose asks for a checkpoint.
    std::string checkpoint_folder;
    // The checkpoints to keep. Defaults filled in.
    v1::Checkpointing checkpoints;
    // Must be given if a Purpose asks for the best model.
    std::string best_path;
    // Writes the model with the variables of `snapshot`. `best` is their result. The thread calls it.
    std::function<absl::Status(const std::string& path, const Snapshot& snapshot, const v1::BestResult& best)>
        save_model;
    // Both must outlive the keeper. The thread calls the observer.
    TrainerObserver* observer = nullptr;
    const Clock* clock = nullptr;
    // The step of the existing checkpoint, or 0.
    int64_t last_step = 0;
  };
  explicit CheckpointKeeper(Options options);
  // Waits for the running write.
  ~CheckpointKeeper();
  CheckpointKeeper(const CheckpointKeeper&) = delete;
  CheckpointKeeper& operator=(const CheckpointKeeper&) = delete;

  // The purpose of a snapshot.
  struct Purpose {
    bool checkpoint = false;
    bool best = false;
  };
  // Takes a snapshot and its state, and writes them soon. Blocks while the previous snapshot is being
  // written.
  void Add(Snapshot snapshot, Purpose purpose, TrainingState state) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns when no write is running.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the step of the newest durable checkpoint, or 0.
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
  // Removes old checkpoints. `step` is the newest checkpoint, `best_step` the step of the best result.
  void RemoveOthers(int64_t step, int64_t best_step);
  bool MayWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || work_.has_value(); }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !busy_; }

  const Options options_;

  mutable Mutex mutex_;
  // The next work of the thread.
  std::optional<Work> work_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // True from setting work_ to its end.
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_CHECKPOINT_KEEPER_H_
