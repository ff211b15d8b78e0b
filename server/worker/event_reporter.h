#ifndef TANDEM_SERVER_WORKER_EVENT_REPORTER_H_
#define TANDEM_SERVER_WORKER_EVENT_REPORTER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/random_access_env.h"
#include "server/workers/spool.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {

// Tells the daemon what happens in this worker, whether or not there is a daemon at the moment. Every event
// goes into the attempt's spool first; a thread of the reporter sends from there whatever the daemon has not
// acknowledged, connecting again for ever when the connection breaks. Who reports never waits for the daemon,
// and memory stays bounded however long it is away. Thread-safe.
class EventReporter {
 public:
  struct Options {
    std::string job_id;
    int attempt = 0;
    // WorkerLaunch.secret.
    std::string secret = {};
    // Of the daemon's WorkerService, as a gRPC target.
    std::string daemon_target;
    // Must not exist.
    std::string spool_path;
    // Called when the daemon wants the training stopped, at most once for each connection. From a thread of
    // the reporter, which waits for it.
    std::function<void()> on_cancel;
    // Called when the daemon wants it stopped for now. Likewise; may be null, where it is never asked.
    std::function<void()> on_pause;
    // Called when the daemon says that this worker is not, or no longer, the job's. Likewise.
    std::function<void(absl::string_view message)> on_dismissed;
    // Beyond so many bytes that the daemon does not have, progress events are dropped, and a notice says so.
    int64_t max_spool_bytes = int64_t{1} << 30;
    // On a full disk other events wait in memory, up to so many, while training goes on; and the FINISHED
    // event, and whoever reports it, for so long.
    size_t most_unspooled = 10000;
    absl::Duration room_patience = absl::Minutes(5);
    // Outlives the reporter.
    RandomAccessEnv* env = RandomAccessEnv::Real();
    // What the daemon has is dropped from the spool once it takes so many bytes.
    int64_t trim_bytes = int64_t{1} << 20;
  };

  // Creates the spool and begins to connect. Errors are those of SpoolWriter::Create.
  static absl::StatusOr<std::unique_ptr<EventReporter>> Create(Options options);
  // Breaks the connection. What was not acknowledged stays in the spool, for the daemon to read.
  ~EventReporter();

  // Puts an event into the spool, with the next sequence number and, where it has none, the time. After an
  // error the event is lost and has no number, and the worker cannot go on; progress events are dropped
  // without an error, and a notice says so when there is room again. On a full disk other events wait for
  // room without an error (see Options). A FINISHED event is on the disk when this returns.
  absl::Status Report(internal::v1::WorkerEvent event);

  // Waits until the daemon has all events; gives up, false, when it acknowledged nothing for `patience` or
  // dismissed this worker.
  bool Drain(absl::Duration patience);

 private:
  using Stream = grpc::ClientReaderWriter<internal::v1::ConnectRequest, internal::v1::ConnectResponse>;

  // An event that was sent, and where the one after it begins in the spool.
  struct Sent {
    int64_t sequence;
    int64_t end;
  };

  EventReporter(Options options, std::unique_ptr<SpoolWriter> writer);

  absl::Status Append(internal::v1::WorkerEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts what waits for room into the spool.
  absl::Status Unspool() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has an event wait for room, unless `full` is another error or too many wait.
  absl::Status WaitForRoom(internal::v1::WorkerEvent event, const absl::Status& full)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a notice before the next event where progress events were dropped.
  absl::Status ReportDropped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Connects and talks until the reporter stops.
  void Run();
  // One connection, to its end. Returns whether the daemon took events: one that cannot, because its disk is
  // full, is not to be asked many times a second.
  bool Talk();
  // Reads what the daemon says until the stream ends.
  void Listen(Stream& stream);
  // Sends what is in the spool until the stream or the reporter ends.
  void Send(Stream& stream);
  // Whether it is worth while to drop from the spool what the daemon has.
  bool MayTrim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || dismissed_ || stream_ended_; }
  // There is something for Send to do.
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<internal::v1::WorkerService::Stub> stub_;

  Mutex mutex_;
  const std::unique_ptr<SpoolWriter> writer_ ABSL_PT_GUARDED_BY(mutex_);
  // Of the sending thread alone.
  SpoolReader reader_;
  // Where it could not be read, and that was told; the sending thread's alone.
  int64_t damaged_at_ = -1;
  int64_t trim_bytes_ ABSL_GUARDED_BY(mutex_);
  int64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  // Where the first event begins that is not known to be acknowledged.
  int64_t acknowledged_end_ ABSL_GUARDED_BY(mutex_) = 0;
  // Where the next event to send begins.
  int64_t send_from_ ABSL_GUARDED_BY(mutex_) = 0;
  // Sent in this connection and not acknowledged, in order.
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mutex_);
  // What the disk had no room for, in order.
  std::deque<internal::v1::WorkerEvent> unspooled_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool drop_noted_ ABSL_GUARDED_BY(mutex_) = false;

  // Of the connection in progress; null between two.
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  bool stream_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool dismissed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_EVENT_REPORTER_H_
