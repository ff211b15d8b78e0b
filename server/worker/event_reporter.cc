#include "server/worker/event_reporter.h"

#include <grpc/support/log.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/workers/worker_protocol.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::ConnectRequest;
using internal::v1::ConnectResponse;
using internal::v1::WorkerEvent;
using internal::v1::WorkerService;

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLastBackoff = kReconnectInterval;
// The time between two tries to write to a full disk.
constexpr absl::Duration kRoomInterval = absl::Milliseconds(200);
// The most events that were sent and not acknowledged. Enough to fill the daemon's group commits; bounds
// sent_.
constexpr size_t kMaxInFlight = 8192;
// The most bytes of several events in a message. See ConnectRequest.events.
constexpr size_t kMostTogether = 64 << 10;
// Over TCP: the interval of signs of life, and the longest wait for the answer.
constexpr absl::Duration kKeepalive = absl::Seconds(15);

// True if gRPC logged a fault of a certificate since the last look. A failed handshake has its reason only in
// gRPC's log.
std::atomic<bool> certificate_failed = false;

// Takes gRPC's log, because gRPC repeats its lines at each connection.
void LogOfGrpc(gpr_log_func_args* args) {
  spdlog::debug("grpc: {}", args->message);
  if (absl::StrContains(absl::AsciiStrToLower(args->message), "certificate")) certificate_failed = true;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target, const std::string& certificate) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, absl::ToInt64Milliseconds(kFirstBackoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, absl::ToInt64Milliseconds(kLastBackoff));
  // The daemon is on this machine or in this cluster, so no proxy of the environment is needed.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (certificate.empty()) {
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  }
  certificate_failed = false;
  gpr_set_log_function(&LogOfGrpc);
  // The certificate has this name. No host name needs to be resolved or to match.
  arguments.SetSslTargetNameOverride(kWorkerListenerName);
  // Without a sign of life from the daemon's host, the stream ends and the worker connects again.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(absl::ToInt64Milliseconds(kKeepalive)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(absl::ToInt64Milliseconds(kKeepalive)));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = certificate;
  return grpc::CreateCustomChannel(target, grpc::SslCredentials(tls), arguments);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventReporter>> EventReporter::Create(Options options) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<SpoolWriter> writer,
                          SpoolWriter::Create(options.spool_path, options.env));
  return std::unique_ptr<EventReporter>(new EventReporter(std::move(options), std::move(writer)));
}

EventReporter::EventReporter(Options options, std::unique_ptr<SpoolWriter> writer)
    : options_(std::move(options)),
      stub_(WorkerService::NewStub(Connect(options_.daemon_target, options_.daemon_certificate))),
      writer_(std::move(writer)),
      reader_(writer_.get()),
      trim_bytes_(options_.trim_bytes) {
  {
    MutexLock lock(&mutex_);
    acknowledged_end_ = send_from_ = writer_->end();
    silent_since_ = Clock::Real()->Elapsed();
    next_complaint_ = silent_since_ + options_.first_complaint;
  }
  thread_ = std::thread([this] { Run(); });
}

EventReporter::~EventReporter() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  thread_.join();
}

absl::Status EventReporter::Report(WorkerEvent event) {
  if (!event.has_time()) {
    *event.mutable_time() =
        google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::GetCurrentTimeNanos());
  }
  MutexLock lock(&mutex_);
  if (event.report().has_progress()) {
    if (writer_->end() - acknowledged_end_ >= options_.max_spool_bytes) {
      ++dropped_;
      return absl::OkStatus();
    }
    absl::Status status = Unspool();
    if (status.ok() && dropped_ > 0) status = ReportDropped();
    if (status.ok() && Append(event).ok()) return absl::OkStatus();
    // Losing a progress report is better than ending the training.
    ++dropped_;
    return absl::OkStatus();
  }
  absl::Status status = Unspool();
  if (status.ok() && dropped_ > 0) status = ReportDropped();
  if (status.ok()) status = Append(event);
  const bool is_last = event.has_finished();
  if (!status.ok()) TANDEM_RETURN_IF_ERROR(WaitForRoom(std::move(event), status));
  return is_last ? writer_->Sync() : absl::OkStatus();
}

absl::Status EventReporter::Unspool() {
  while (!unspooled_.empty()) {
    TANDEM_RETURN_IF_ERROR(Append(unspooled_.front()));
    unspooled_.pop_front();
    if (unspooled_.empty()) spdlog::info("the disk has room for events again");
  }
  return absl::OkStatus();
}

absl::Status EventReporter::WaitForRoom(WorkerEvent event, const absl::Status& full) {
  if (!absl::IsResourceExhausted(full) || unspooled_.size() >= options_.most_unspooled) return full;
  if (unspooled_.empty())
    spdlog::warn("cannot write events to the spool, so they wait in memory: {}", full.ToString());
  const bool is_last = event.has_finished();
  unspooled_.push_back(std::move(event));
  if (!is_last) return absl::OkStatus();
  // No later event can write it, and the worker is about to end.
  const absl::Duration give_up = Clock::Real()->Elapsed() + options_.room_patience;
  while (true) {
    const absl::Status status = Unspool();
    if (!absl::IsResourceExhausted(status) || Clock::Real()->Elapsed() >= give_up) return status;
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRoomInterval);
  }
}

absl::Status EventReporter::Append(WorkerEvent& event) {
  event.set_worker_sequence(last_sequence_ + 1);
  TANDEM_RETURN_IF_ERROR(writer_->Append(event));
  ++last_sequence_;
  urgent_ |= !event.report().has_progress();
  return absl::OkStatus();
}

absl::Status EventReporter::ReportDropped() {
  WorkerEvent notice;
  *notice.mutable_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::GetCurrentTimeNanos());
  notice.mutable_report()->mutable_notice()->set_message(
      absl::StrCat(dropped_, " progress reports were dropped: there was no room to keep them."));
  TANDEM_RETURN_IF_ERROR(Append(notice));
  dropped_ = 0;
  return absl::OkStatus();
}

bool EventReporter::Drain(absl::Duration patience) {
  MutexLock lock(&mutex_);
  urgent_ = true;
  while (true) {
    const int64_t before = acknowledged_;
    struct Wait {
      EventReporter* reporter;
      int64_t before;
    } wait{this, before};
    const bool changed = mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](Wait* wait) ABSL_NO_THREAD_SAFETY_ANALYSIS {
              EventReporter* reporter = wait->reporter;
              return reporter->dismissed_ || reporter->acknowledged_ == reporter->last_sequence_ ||
                     reporter->acknowledged_ > wait->before;
            },
            &wait),
        patience);
    if (acknowledged_ == last_sequence_) return true;
    if (!changed || dismissed_) return false;
  }
}

void EventReporter::Run() {
  absl::Duration backoff = kFirstBackoff;
  while (true) {
    backoff = Talk() ? kFirstBackoff : std::min(2 * backoff, kLastBackoff);
    MutexLock lock(&mutex_);
    const bool over =
        mutex_.AwaitWithTimeout(absl::Condition(
                                    +[](EventReporter* reporter) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                      return reporter->stopping_ || reporter->dismissed_;
                                    },
                                    this),
                                backoff);
    if (over) return;
  }
}

bool EventReporter::Talk() {
  grpc::ClientContext context;
  // The channel retries, with back-off, until a daemon is there.
  context.set_wait_for_ready(true);
  int64_t acknowledged_before;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return false;
    acknowledged_before = acknowledged_;
    context_ = &context;
    answered_ = false;
    stream_ended_ = false;
  }
  // The next call blocks until a daemon is there.
  std::thread complainer([this] { Complain(); });
  std::unique_ptr<Stream> stream = stub_->Connect(&context);
  std::thread listener([this, &stream] { Listen(*stream); });
  Send(*stream);
  context.TryCancel();
  listener.join();
  complainer.join();
  stream->Finish();
  MutexLock lock(&mutex_);
  context_ = nullptr;
  if (answered_) {
    silent_since_ = Clock::Real()->Elapsed();
    next_complaint_ = silent_since_ + options_.first_complaint;
    if (!stopping_) spdlog::warn("lost the connection to the daemon, reconnecting");
  }
  return acknowledged_ > acknowledged_before;
}

void EventReporter::Complain() {
  MutexLock lock(&mutex_);
  while (true) {
    const bool is_over =
        mutex_.AwaitWithTimeout(absl::Condition(
                                    +[](EventReporter* reporter) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                      return reporter->answered_ || reporter->Over();
                                    },
                                    this),
                                std::max(absl::ZeroDuration(), next_complaint_ - Clock::Real()->Elapsed()));
    if (is_over) return;
    const absl::Duration now = Clock::Real()->Elapsed();
    const absl::string_view target = options_.daemon_target;
    const bool is_wrong_certificate = certificate_failed.exchange(false);
    spdlog::warn(
        "cannot reach the daemon at {}: {}no answer for {}; training continues, and the spool keeps the "
        "events{}",
        std::string(absl::StripPrefix(absl::StripPrefix(target, "ipv4:"), "ipv6:")),
        is_wrong_certificate ? "its certificate is not the certificate of this attempt's start, " : "",
        absl::FormatDuration(absl::Trunc(now - silent_since_, absl::Seconds(1))),
        is_wrong_certificate ? "; put worker-listen.pem and worker-listen.key of that time back into the "
                               "daemon's state folder"
        : options_.daemon_certificate.empty()
            ? ""
            : "; this node must reach this address (tandemd --worker-listen)");
    next_complaint_ = now + options_.complaint_interval;
  }
}

void EventReporter::Listen(Stream& stream) {
  ConnectResponse response;
  while (stream.Read(&response)) {
    switch (response.kind_case()) {
      case ConnectResponse::kAcknowledgement: {
        const int64_t sequence = response.acknowledgement().worker_sequence();
        MutexLock lock(&mutex_);
        if (!answered_ && sequence < acknowledged_) {
          // The daemon's database was restored from an earlier time. Send everything that the spool still
          // has.
          acknowledged_ = sequence;
          acknowledged_end_ = SpoolWriter::kFirstOffset;
        }
        answered_ = true;
        acknowledged_ = std::max(acknowledged_, std::min(sequence, last_sequence_));
        while (!sent_.empty() && sent_.front().sequence <= acknowledged_) {
          acknowledged_end_ = sent_.front().end;
          sent_.pop_front();
        }
        break;
      }
      case ConnectResponse::kCancel:
        options_.on_cancel();
        break;
      case ConnectResponse::kPause:
        if (options_.on_pause) options_.on_pause();
        break;
      case ConnectResponse::kDismissal: {
        {
          MutexLock lock(&mutex_);
          dismissed_ = true;
        }
        options_.on_dismissed(response.dismissal().message());
        break;
      }
      // A newer daemon's message.
      case ConnectResponse::KIND_NOT_SET:
        break;
    }
  }
  MutexLock lock(&mutex_);
  stream_ended_ = true;
}

bool EventReporter::HasWork() const {
  return Over() || (send_from_ < writer_->end() && sent_.size() < kMaxInFlight) || MayTrim();
}

bool EventReporter::MayTrim() const {
  const int64_t done = acknowledged_end_ - SpoolWriter::kFirstOffset;
  // Trimming copies the rest, so the rest must be smaller than the dropped part.
  return done >= trim_bytes_ && done >= writer_->end() - acknowledged_end_;
}

void EventReporter::Trim() {
  if (const absl::Status status = writer_->DropBefore(acknowledged_end_); !status.ok()) {
    spdlog::warn("{}", status.ToString());
    // Try again when twice as much can be dropped.
    trim_bytes_ *= 2;
    return;
  }
  const int64_t moved = acknowledged_end_ - SpoolWriter::kFirstOffset;
  acknowledged_end_ -= moved;
  send_from_ -= moved;
  for (Sent& sent : sent_) sent.end -= moved;
  reader_.Seek(send_from_);
}

void EventReporter::Send(Stream& stream) {
  ConnectRequest request;
  request.mutable_hello()->set_job_id(options_.job_id);
  request.mutable_hello()->set_attempt(options_.attempt);
  request.mutable_hello()->set_pid(getpid());
  request.mutable_hello()->set_protocol(kWorkerProtocol);
  request.mutable_hello()->set_secret(options_.secret);
  request.mutable_hello()->set_worker(options_.worker);
  request.mutable_hello()->set_host(options_.host);
  if (!stream.Write(request)) return;
  {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](EventReporter* reporter)
             ABSL_NO_THREAD_SAFETY_ANALYSIS { return reporter->answered_ || reporter->Over(); },
        this));
    if (Over()) return;
    // Send unacknowledged events again, except those that the daemon has.
    sent_.clear();
    send_from_ = acknowledged_end_;
    reader_.Seek(send_from_);
    urgent_ = true;
  }
  while (true) {
    int64_t limit;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](EventReporter* reporter) ABSL_NO_THREAD_SAFETY_ANALYSIS { return reporter->HasWork(); }, this));
      if (Over()) return;
      if (MayTrim()) {
        Trim();
        continue;
      }
      mutex_.AwaitWithTimeout(absl::Condition(
                                  +[](EventReporter* reporter) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                    return reporter->urgent_ || reporter->Over();
                                  },
                                  this),
                              options_.progress_wait);
      if (Over()) return;
      urgent_ = false;
      limit = writer_->end();
    }
    if (!SendUpTo(limit, stream)) return;
  }
}

bool EventReporter::SendUpTo(int64_t limit, Stream& stream) {
  ConnectRequest request;
  size_t bytes = 0;
  while (reader_.offset() < limit) {
    absl::StatusOr<std::optional<WorkerEvent>> event = reader_.Next(limit);
    if (!event.ok() || !event->has_value()) {
      // Log once, because each connection reaches the damage again.
      if (std::exchange(damaged_at_, reader_.offset()) != reader_.offset()) {
        spdlog::error("cannot read the event spool at byte {}: {}; the daemon gets no events from there on",
                      reader_.offset(), event.ok() ? "it is damaged" : std::string(event.status().message()));
      }
      if (bytes > 0) stream.Write(request);
      return false;
    }
    const int64_t sequence = (*event)->worker_sequence();
    bool is_full;
    {
      MutexLock lock(&mutex_);
      send_from_ = reader_.offset();
      if (sequence <= acknowledged_) {
        if (sent_.empty()) acknowledged_end_ = send_from_;
        continue;
      }
      sent_.push_back({sequence, send_from_});
      is_full = sent_.size() >= kMaxInFlight;
    }
    const size_t size = (*event)->ByteSizeLong();
    if (bytes > 0 && bytes + size > kMostTogether) {
      if (!stream.Write(request)) return false;
      request.Clear();
      bytes = 0;
    }
    bytes += size;
    *request.add_events() = *std::move(*event);
    if (is_full) break;
  }
  return bytes == 0 || stream.Write(request);
}

}  // namespace tandem
