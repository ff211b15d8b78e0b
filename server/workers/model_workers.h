#ifndef TANDEM_SERVER_WORKERS_MODEL_WORKERS_H_
#define TANDEM_SERVER_WORKERS_MODEL_WORKERS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/unique_fd.h"
#include "server/events/item_source.h"
#include "server/workers/model_process.h"
#include "server/workers/sandbox_options.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// A task, from the queue to its end. Thread-safe.
class ModelCall final : public ItemSource<internal::v1::ModelTaskOutput> {
 public:
  void Next(Callback callback) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the task's process, or the wait for it, soon. Drops the remaining outputs; the end is CANCELLED.
  void Cancel() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ModelWorkers;

  ModelCall(std::string user, internal::v1::ModelTask task, UniqueFd wake)
      : user_(std::move(user)), task_(std::move(task)), wake_(std::move(wake)) {}

  // Gives an output to the waiting callback, or keeps it. If too many are kept, blocks until `deadline`.
  void Deliver(internal::v1::ModelTaskOutput output, absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call. Only the first end counts.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string user_;
  const internal::v1::ModelTask task_;
  // Becomes readable when the call is cancelled.
  const UniqueFd wake_;

  mutable Mutex mutex_;
  std::deque<internal::v1::ModelTaskOutput> outputs_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  Callback callback_ ABSL_GUARDED_BY(mutex_);
};

// Runs model tasks in processes of tandem-worker. Thread-safe.
//
// A process ends with its call, except after a prediction for inputs: then it keeps the model for a while,
// for the same user's next inputs for this model. A model without a checksum (of a running job, or of a
// checkpoint) is not kept. So a process never holds the data of two users, or two models.
//
// A few run at once, with low priority and without a lease; some wait; more are refused. A user's first
// waiting call is never refused. Of several waiting users, the user with the fewest running calls is next,
// and equal users take turns. So no user's calls block another user's. A process that is cancelled, takes too
// long, or outlives the daemon's stop is killed with all its children.
class ModelWorkers {
 public:
  struct Options {
    // The path of tandem-worker.
    std::string worker_program;
    int most_running = 2;
    // Does not limit each user's first waiting call.
    int most_waiting = 16;
    int most_waiting_each = 8;
    // The longest time of a call, from its turn to its end.
    absl::Duration time_limit = absl::Minutes(10);
    // The shortest time for which a process waits for the next prediction. At most `most_running` processes
    // wait. 0: none.
    absl::Duration idle_time = absl::ZeroDuration();
    // As in WorkerLauncher, so that an evaluation computes like the training.
    std::string algorithms_folder = {};
    // As in WorkerLauncher.
    SandboxOptions sandbox = {};
  };

  explicit ModelWorkers(Options options);
  // Calls Stop.
  ~ModelWorkers();
  ModelWorkers(const ModelWorkers&) = delete;
  ModelWorkers& operator=(const ModelWorkers&) = delete;

  // Starts a task for `user`. RESOURCE_EXHAUSTED: too many calls wait. UNAVAILABLE: Stop was called. The call
  // ends with DEADLINE_EXCEEDED if it takes too long, with INTERNAL if the process died, and with errors that
  // the process reports.
  absl::StatusOr<std::shared_ptr<ModelCall>> Start(const std::string& user, internal::v1::ModelTask task)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all calls, waits for their ends, and ends all processes. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_, stop_mutex_);

 private:
  // A process that waits for the next prediction.
  struct KeptProcess {
    std::string user;
    std::string model_path;
    std::string model_sha256;
    absl::Duration until;  // Clock::Elapsed.
    std::unique_ptr<ModelProcess> process;
  };

  void RunThread();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); }
  // Returns the number of the user's calls in `calls`.
  template <typename Calls>
  static int64_t CountOf(const std::string& user, const Calls& calls);
  // Removes and returns the next call to run. At least one call must be waiting.
  std::shared_ptr<ModelCall> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Performs the call and returns its end.
  absl::Status Run(ModelCall& call) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<ModelProcess>> StartProcess(const internal::v1::ModelTask& task) const;
  // Returns whether the call may use a kept process, and whether its process may be kept.
  static bool MayKeep(const internal::v1::ModelTask& task);
  static bool IsFor(const KeptProcess& kept, const ModelCall& call);
  // Returns the newest kept process for the call, or null.
  std::unique_ptr<ModelProcess> TakeKept(const ModelCall& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps the call's process for the next call, if one may come.
  void Keep(const ModelCall& call, std::unique_ptr<ModelProcess> process) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Mutex mutex_;
  std::deque<std::shared_ptr<ModelCall>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ModelCall>> running_ ABSL_GUARDED_BY(mutex_);
  std::deque<KeptProcess> kept_ ABSL_GUARDED_BY(mutex_);  // The oldest first.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_MODEL_WORKERS_H_
