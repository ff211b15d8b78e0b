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

// Reports this worker's events to the daemon, whether or not a daemon is running. Each event is first written
// to the attempt's spool. The reporter's thread sends the unacknowledged events from the spool, and
// reconnects for ever. Callers of Report never wait for the daemon, and memory stays bounded however long it
// is away. Thread-safe.
class EventReporter {
 public:
  struct Options {
    std::string job_id;
    int attempt = 0;
    // WorkerGroup.worker.
    int worker = 0;
    // Hello.host.
    std::string host = {};
    // WorkerLaunch.secret.
    std::string secret = {};
    // The gRPC target of the daemon's WorkerService.
    std::string daemon_target;
    // WorkerLaunch.daemon_certificate. If not empty, the connection uses TLS and accepts no other
    // certificate.
    std::string daemon_certificate = {};
    // The file must not exist.
    std::string spool_path;
    // Called when the daemon wants the training stopped, at most once per connection. Runs on a thread of the
    // reporter, which waits for it.
    std::function<void()> on_cancel;
    // Called in the same way when the daemon wants the training paused. May be null if the daemon never asks.
    std::function<void()> on_pause;
    // Called in the same way when the daemon says that this worker is not the job's worker.
    std::function<void(absl::string_view message)> on_dismissed;
    // Progress events are dropped while the spool has this many bytes of unacknowledged events. Default 1
    // GiB.
    int64_t max_spool_bytes = int64_t{1} << 30;
    // On a full disk, up to this many other events wait in memory while training continues. The FINISHED
    // event and its caller wait for at most `room_patience`.
    size_t most_unspooled = 10000;
    absl::Duration room_patience = absl::Minutes(5);
    // Must outlive the reporter.
    RandomAccessEnv* env = RandomAccessEnv::Real();
    // The log reports a daemon that has not answered for this time. Default 10 s.
    absl::Duration first_complaint = absl::Seconds(10);
    // While the daemon does not answer, the log repeats the report after this time. Default 5 minutes.
    absl::Duration complaint_interval = absl::Minutes(5);
    // Acknowledged events are dropped from the spool once they take this many bytes.
    int64_t trim_bytes = int64_t{1} << 20;
    // A progress event waits this long for others, so that the daemon commits and shows them together. Other
    // events do not wait, and take waiting progress events along.
    absl::Duration progress_wait = absl::Milliseconds(120);
  };

  // Creates the spool and starts to connect. Errors as SpoolWriter::Create.
  static absl::StatusOr<std::unique_ptr<EventReporter>> Create(Options options);
  // Closes the connection. Unacknowledged events stay in the spool for the daemon.
  ~EventReporter();

  // Adds an event to the spool, with the next sequence number and, if missing, the time. After an error the
  // worker cannot continue, and the event may be lost. A progress event that cannot be written is dropped
  // without an error; a later notice gives the number of dropped events. On a full disk, other events wait
  // for room without an error (see Options). A FINISHED event is on the disk on return.
  absl::Status Report(internal::v1::WorkerEvent event);

  // Blocks until the daemon has all events. Returns false if the daemon acknowledged nothing for `patience`
  // or dismissed this worker.
  bool Drain(absl::Duration patience);

 private:
  using Stream = grpc::ClientReaderWriter<internal::v1::ConnectRequest, internal::v1::ConnectResponse>;

  // A sent event, and the offset of the next event in the spool.
  struct Sent {
    int64_t sequence;
    int64_t end;
  };

  EventReporter(Options options, std::unique_ptr<SpoolWriter> writer);

  absl::Status Append(internal::v1::WorkerEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the waiting events to the spool.
  absl::Status Unspool() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes an event wait for room. Returns `full` if it is another error or too many events wait.
  absl::Status WaitForRoom(internal::v1::WorkerEvent event, const absl::Status& full)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a notice about dropped progress events.
  absl::Status ReportDropped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Connects and sends until the reporter stops.
  void Run();
  // Serves one connection to its end. Returns true if the daemon acknowledged events. Otherwise, for example
  // because its disk is full, do not reconnect at once.
  bool Talk();
  // Logs that the daemon does not answer, until it answers or the stream or the reporter ends.
  void Complain();
  // Reads the daemon's messages until the stream ends.
  void Listen(Stream& stream);
  // Sends the spool's events until the stream or the reporter ends.
  void Send(Stream& stream);
  // Sends the spool's events up to the offset `limit`, or up to kMaxInFlight. Returns false at the stream's
  // end or if the spool is damaged.
  bool SendUpTo(int64_t limit, Stream& stream);
  // Returns true if dropping acknowledged events from the spool is worthwhile.
  bool MayTrim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || dismissed_ || stream_ended_; }
  // Returns true if Send has something to do.
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<internal::v1::WorkerService::Stub> stub_;

  Mutex mutex_;
  const std::unique_ptr<SpoolWriter> writer_ ABSL_PT_GUARDED_BY(mutex_);
  // Only the sending thread uses it.
  SpoolReader reader_;
  // The offset of a damage that was logged. Only the sending thread uses it.
  int64_t damaged_at_ = -1;
  int64_t trim_bytes_ ABSL_GUARDED_BY(mutex_);
  int64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  // The offset of the first unacknowledged event.
  int64_t acknowledged_end_ ABSL_GUARDED_BY(mutex_) = 0;
  // The offset of the next event to send.
  int64_t send_from_ ABSL_GUARDED_BY(mutex_) = 0;
  // True if an unsent event must not wait for others.
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  // The events that were sent on this connection and not acknowledged, in order.
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mutex_);
  // Events that the disk had no room for, in order.
  std::deque<internal::v1::WorkerEvent> unspooled_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;

  // The current connection's; null between connections.
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  // On the clock of Clock::Elapsed. Since when the daemon has not answered, and when the log next says so.
  absl::Duration silent_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_complaint_ ABSL_GUARDED_BY(mutex_);
  bool stream_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool dismissed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_EVENT_REPORTER_H_
