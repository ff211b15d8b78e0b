#ifndef TANDEM_SERVER_WORKERS_MODEL_PROCESS_H_
#define TANDEM_SERVER_WORKERS_MODEL_PROCESS_H_

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/process_group.h"
#include "engine/base/unique_fd.h"
#include "server/workers/model_task_frames.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// A process that performs model tasks, one after another. The tasks come through its standard input and the
// outputs return through its standard output. Not thread-safe. The destructor kills the process with all its
// children.
class ModelProcess {
 public:
  // Takes an output of a task. May block until `deadline` (Clock::Elapsed), if the task's client is slow.
  using Deliver = absl::FunctionRef<void(internal::v1::ModelTaskOutput output, absl::Duration deadline)>;

  // Errors are those of ProcessGroup::Start, or the system has no more files.
  static absl::StatusOr<std::unique_ptr<ModelProcess>> Start(const ProcessGroup::Command& command);
  ~ModelProcess() { process_->Kill(absl::InfiniteDuration()); }
  ModelProcess(const ModelProcess&) = delete;
  ModelProcess& operator=(const ModelProcess&) = delete;

  // Performs a task and returns the error that the process reports. CANCELLED: the file `wake` became
  // readable. DEADLINE_EXCEEDED: the task did not end within `time_limit` from `start` (Clock::Elapsed).
  // INTERNAL: the process died, and its last words are in the daemon's log.
  absl::Status Perform(const internal::v1::ModelTask& task, int wake, absl::Duration start,
                       absl::Duration time_limit, Deliver deliver);

  // Returns whether the process died in the last task.
  bool has_died() const { return has_died_; }

  // Returns whether the process can perform another task: it lives, ended the last task itself, and wrote
  // nothing after the task's end. Bytes after the end would be the next task's first output.
  bool IsReady() const;

 private:
  ModelProcess(std::unique_ptr<ProcessGroup> process, UniqueFd tasks, UniqueFd outputs, UniqueFd errors)
      : process_(std::move(process)),
        tasks_(std::move(tasks)),
        outputs_(std::move(outputs)),
        errors_(std::move(errors)) {}

  const std::unique_ptr<ProcessGroup> process_;
  const UniqueFd tasks_;    // A socket.
  const UniqueFd outputs_;  // A pipe.
  const UniqueFd errors_;   // The process's stderr, in memory.
  FrameReader frames_;
  bool ended_task_ = false;
  bool has_died_ = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_MODEL_PROCESS_H_
