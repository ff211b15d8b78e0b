#ifndef TANDEM_SERVER_WORKERS_WORKER_SESSION_H_
#define TANDEM_SERVER_WORKERS_WORKER_SESSION_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {

class WorkerSession;

// Decides which workers may connect. Thread-safe.
class WorkerSessionHost {
 public:
  virtual ~WorkerSessionHost() = default;
  // Called when a worker says hello. After an error, the worker is dismissed with the error's message.
  virtual absl::Status Admit(const internal::v1::Hello& hello,
                             const std::shared_ptr<WorkerSession>& session) = 0;
  // Called before events of an admitted worker are applied. May block on the disk for a moment.
  virtual void BeforeApply(const std::string& /*job_id*/, int32_t /*attempt*/,
                           const std::vector<internal::v1::WorkerEvent>& /*events*/) {}
  // Called when the stream of a worker that said hello has ended.
  virtual void Leave(const std::string& job_id, const WorkerSession* session) = 0;
};

// A stream from a worker. Passes its events to the JobMachine in batches, one batch at a time, acknowledges
// durable events, and sends commands to the worker. Stops reading while too many events wait. Thread-safe.
class WorkerSession
    : public grpc::ServerBidiReactor<internal::v1::ConnectRequest, internal::v1::ConnectResponse> {
 public:
  // Starts to read. gRPC keeps the reactor until the stream's end; `host` and `jobs` must outlive it. If the
  // host does not admit a worker within `hello_limit`, the stream ends with CANCELLED. `context` is the
  // stream's.
  static std::shared_ptr<WorkerSession> Start(WorkerSessionHost* host, JobMachine* jobs,
                                              grpc::CallbackServerContext* context,
                                              absl::Duration hello_limit);

  // Tells the worker to stop training. Does nothing after the stream's end.
  void Cancel();
  // Tells the worker to pause. Does nothing after the stream's end.
  void Pause();
  // Tells the worker to exit, and ends the stream.
  void Dismiss(absl::string_view message);
  // Ends the stream.
  void Close();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WorkerSession(WorkerSessionHost* host, JobMachine* jobs, grpc::CallbackServerContext* context)
      : host_(host), jobs_(jobs), context_(context) {}

  void OnHello();
  // Ends the stream if the host has not admitted its worker.
  void OnHelloLimit();
  // Passes the waiting events to the JobMachine unless a batch is in progress.
  void Apply();
  void OnApplied(const absl::StatusOr<JobMachine::WorkerPosition>& position);
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the next message, or ends the stream if due.
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DismissLocked(absl::string_view message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  WorkerSessionHost* const host_;
  JobMachine* const jobs_;
  // Valid until OnDone.
  grpc::CallbackServerContext* const context_;
  // Calls OnHelloLimit.
  grpc::Alarm hello_timer_;

  // The message of the read in progress.
  internal::v1::ConnectRequest request_;
  // The message of the write in progress.
  internal::v1::ConnectResponse response_;

  Mutex mutex_;
  // Keeps this object alive until OnDone.
  std::shared_ptr<WorkerSession> self_ ABSL_GUARDED_BY(mutex_);
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  // 0 before hello.
  int32_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;

  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<internal::v1::WorkerEvent> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool applying_ ABSL_GUARDED_BY(mutex_) = false;
  // True until the first position arrives.
  bool greeting_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;

  // The messages to send, in this order.
  std::optional<int64_t> acknowledge_ ABSL_GUARDED_BY(mutex_);
  bool cancel_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancel_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool pause_ ABSL_GUARDED_BY(mutex_) = false;
  bool pause_sent_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> dismiss_ ABSL_GUARDED_BY(mutex_);
  // Ends the stream after the messages.
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_SESSION_H_
