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
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/unique_fd.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// One task for a process of its own, from its wait in the queue to its end. Thread-safe.
class ModelCall {
 public:
  // An output; nothing: the task was done; or the error that it ended with.
  using Result = absl::StatusOr<std::optional<internal::v1::ModelTaskOutput>>;
  using Callback = absl::AnyInvocable<void(Result)>;

  // Calls `callback` once with the next output, from any thread, perhaps before it returns. One at a time.
  void Next(Callback callback) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the process, or the wait for one, soon: outputs that were not taken are dropped, and the end is
  // CANCELLED. Idempotent.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ModelWorkers;

  ModelCall(std::string user, internal::v1::ModelTask task, UniqueFd wake)
      : user_(std::move(user)), task_(std::move(task)), wake_(std::move(wake)) {}

  // Gives an output to who waits for it, or keeps it; waits while many are kept, until `deadline`.
  void Deliver(internal::v1::ModelTaskOutput output, absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first end counts.
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

// Runs model tasks, each in a tandem-worker of its own that lives no longer than its call. Thread-safe.
//
// A few run at once, at a low priority and without a lease; some wait; more are refused. A user's first call
// that waits always has a place, and where several users' wait, the next to run is one of whoever has the
// fewest that run, and users take turns: so no user's calls keep out another's. A process
// that is cancelled, takes too long, or is left by a stopping daemon is killed with all that it started.
class ModelWorkers {
 public:
  struct Options {
    // The tandem-worker program.
    std::string worker_program;
    int most_running = 2;
    // The first of each user's may be more.
    int most_waiting = 16;
    int most_waiting_each = 8;
    // From the start of a process to its end.
    absl::Duration time_limit = absl::Minutes(10);
    // As WorkerLauncher's, so that an evaluation computes as the training did.
    std::string algorithms_folder = {};
    // Likewise.
    SandboxOptions sandbox = {};
  };

  explicit ModelWorkers(Options options);
  // Stop().
  ~ModelWorkers();
  ModelWorkers(const ModelWorkers&) = delete;
  ModelWorkers& operator=(const ModelWorkers&) = delete;

  // `user` is who calls. RESOURCE_EXHAUSTED: too many wait. UNAVAILABLE: after Stop. Other errors are the
  // call's end: DEADLINE_EXCEEDED, INTERNAL where the process died, and those that it reports.
  absl::StatusOr<std::shared_ptr<ModelCall>> Start(const std::string& user, internal::v1::ModelTask task)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all calls and waits for their ends. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_, stop_mutex_);

 private:
  void RunThread();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); }
  // How many of `calls` are the user's.
  template <typename Calls>
  static int64_t CountOf(const std::string& user, const Calls& calls);
  // Takes the next to run out of those that wait, of which there is one.
  std::shared_ptr<ModelCall> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs the call's process to its end, which is what it returns.
  absl::Status Run(ModelCall& call) const;

  const Options options_;
  Mutex mutex_;
  std::deque<std::shared_ptr<ModelCall>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ModelCall>> running_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_MODEL_WORKERS_H_
