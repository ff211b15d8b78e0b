// A worker for the supervisor's tests that trains nothing. Its job's name decides its behaviour:
//
//   succeed      starts, sends a notice, finishes
//   flood        like succeed, with 20,000 notices
//   repeat       like succeed, and sends every event twice
//   unknown      starts, and sends an event without a kind
//   wait         starts, and waits to be cancelled
//   parent       like wait, with a child process, whose pid it writes to "child" in the job's folder
//   stubborn     like wait, but ignores a cancellation and SIGTERM
//   lingering    like succeed, but does not exit
//   unreported   leaves all events of succeed in its spool, and exits
//   crash        starts, leaves a notice in its spool, writes a crash report, and aborts
//   device       like unreported, but its exit code says that its GPU failed
//   exit         logs something and exits with code 7
//   protocol N   like wait, and reports version N of the protocol; 0: reports none
//   unconnected  waits for its end without connecting to the daemon
//
// In a group, the first worker behaves like this, and the others wait for their ends, except for these names:
//
//   share        each behaves like succeed: the others exit at once
//   notice       worker 1 exits as if it noticed another's loss, and the first waits for its end

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"
#include "google/protobuf/text_format.h"
#include "server/workers/exit_codes.h"
#include "server/workers/job_folder.h"
#include "server/workers/spool.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_protocol.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {
namespace {

using internal::v1::ConnectRequest;
using internal::v1::ConnectResponse;
using internal::v1::WorkerEvent;
using internal::v1::WorkerLaunch;
using internal::v1::WorkerService;

class FakeWorker {
 public:
  explicit FakeWorker(WorkerLaunch launch) : launch_(std::move(launch)), behaviour_(launch_.spec().name()) {
    Add().mutable_started();
    if (absl::StartsWith(behaviour_, "protocol ") || behaviour_ == "wait" || behaviour_ == "parent" ||
        behaviour_ == "stubborn")
      return;
    if (behaviour_ == "unknown") {
      Add();
      return;
    }
    const int notices = behaviour_ == "flood" ? 20000 : 1;
    for (int i = 1; i <= notices; ++i)
      Add().mutable_report()->mutable_notice()->set_message(std::to_string(i));
    if (behaviour_ != "crash") Finish(v1::JOB_STATE_SUCCEEDED, v1::STATE_REASON_COMPLETED);
  }

  // Writes the events only to the spool.
  bool Spool() const {
    auto writer = SpoolWriter::Create(JobFolder(launch_.job_folder()).SpoolPath(launch_.attempt()));
    if (!writer.ok()) return false;
    for (const WorkerEvent& event : events_) {
      if (!(*writer)->Append(event).ok()) return false;
    }
    return true;
  }

  // Talks to one daemon after another. Returns the exit code.
  int Serve() {
    const auto stub = WorkerService::NewStub(
        grpc::CreateChannel(launch_.daemon_target(), grpc::InsecureChannelCredentials()));
    while (true) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      const auto stream = stub->Connect(&context);
      if (Talk(*stream)) return exit_code_;
      context.TryCancel();
      stream->Finish();
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

 private:
  WorkerEvent& Add() {
    events_.emplace_back().set_worker_sequence(events_.size());
    return events_.back();
  }

  void Finish(v1::JobState state, v1::StateReason reason) {
    internal::v1::Finished& finished = *Add().mutable_finished();
    finished.set_state(state);
    finished.set_reason(reason);
    finished.set_message("as the test wants it");
  }

  // Returns true if the worker must exit.
  bool Talk(grpc::ClientReaderWriter<ConnectRequest, ConnectResponse>& stream) {
    ConnectRequest request;
    request.mutable_hello()->set_job_id(launch_.job_id());
    request.mutable_hello()->set_attempt(launch_.attempt());
    request.mutable_hello()->set_pid(getpid());
    int32_t protocol = kWorkerProtocol;
    if (absl::string_view number = behaviour_; absl::ConsumePrefix(&number, "protocol ")) {
      if (!absl::SimpleAtoi(number, &protocol)) return false;
    }
    request.mutable_hello()->set_protocol(protocol);
    request.mutable_hello()->set_secret(launch_.secret());
    if (!stream.Write(request)) return false;
    ConnectResponse response;
    int64_t sent = -1;
    while (stream.Read(&response)) {
      if (response.has_dismissal()) {
        exit_code_ = kWorkerDismissed;
        return true;
      }
      if (response.has_cancel() && behaviour_ != "stubborn" && !events_.back().has_finished()) {
        Finish(v1::JOB_STATE_CANCELLED, v1::STATE_REASON_CANCEL_REQUESTED);
      }
      if (response.has_pause() && behaviour_ != "stubborn" && !events_.back().has_finished()) {
        Finish(v1::JOB_STATE_PAUSED, v1::STATE_REASON_PAUSE_REQUESTED);
      }
      if (response.has_acknowledgement()) {
        const int64_t acknowledged = response.acknowledgement().worker_sequence();
        sent = std::max(sent, acknowledged);
        const bool is_done = events_.back().has_finished() && acknowledged == events_.size();
        if (is_done && behaviour_ != "lingering") return true;
      }
      for (; sent < static_cast<int64_t>(events_.size()); ++sent) {
        request.Clear();
        *request.add_events() = events_[sent];
        if (!stream.Write(request)) return false;
        if (behaviour_ == "repeat" && !stream.Write(request)) return false;
      }
    }
    return false;
  }

  const WorkerLaunch launch_;
  const std::string behaviour_;
  std::vector<WorkerEvent> events_;
  int exit_code_ = kWorkerDone;
};

int Main(int argc, char** argv) {
  if (argc != 5 || std::string(argv[1]) != "--launch" || std::string(argv[3]) != "--lock-fd")
    return kWorkerBadLaunch;
  WorkerLaunch launch;
  if (!google::protobuf::TextFormat::ParseFromString(ContentOrEmpty(argv[2]), &launch))
    return kWorkerBadLaunch;
  const JobFolder folder(launch.job_folder());
  const int index = launch.group().worker();
  absl::StatusOr<WorkerLock> lock = WorkerLock::Inherit(std::atoi(argv[4]), folder.LockPath(index));
  if (!lock.ok() || !lock->SetHolder({.attempt = launch.attempt(), .pid = getpid()}).ok())
    return kWorkerLockHeld;
  // No other file of the daemon may be open. The libraries' files are closed on exec.
  for (int fd = WorkerLock::kInheritedFd + 1; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) == 0) {
      std::fprintf(stderr, "file descriptor %d was inherited\n", fd);
      return 1;
    }
  }

  const std::string& behaviour = launch.spec().name();
  if (index > 0 && behaviour == "share") return kWorkerDone;
  if (index == 1 && behaviour == "notice") {
    std::fprintf(stderr, "rank 0 of 2 (worker 0) has been silent for 30s\n");
    return kWorkerGroupFailed;
  }
  if (index > 0 || behaviour == "notice") pause();
  if (behaviour == "exit") {
    std::fprintf(stderr, "first line\nthe last words\n");
    return 7;
  }
  if (behaviour == "no room") {
    std::fprintf(stderr, "cannot write the spool: No space left on device\n");
    return kWorkerSpoolFailed;
  }
  if (behaviour == "stubborn" || behaviour == "lingering") signal(SIGTERM, SIG_IGN);
  if (behaviour == "unconnected") pause();
  if (behaviour == "parent") {
    const pid_t child = fork();
    if (child == 0) {
      while (true) pause();
    }
    std::ofstream(launch.job_folder() + "/child") << child << std::flush;
  }
  FakeWorker worker(launch);
  if (behaviour == "unreported" || behaviour == "crash" || behaviour == "device") {
    if (!worker.Spool()) return kWorkerSpoolFailed;
    if (behaviour == "crash") {
      // Like engine/base/crash_report.h.
      std::ofstream(JobFolder(launch.job_folder()).CrashReportPath(launch.attempt())) << "a stack\n";
      std::fputs("why it crashed\n*** SIGABRT received at time=1 on cpu 0 ***\nPC: @ 0x1 a stack\n", stderr);
      std::abort();
    }
    return behaviour == "device" ? kWorkerDeviceFailed : kWorkerDone;
  }
  return worker.Serve();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
