#include "tests/bench/load_watchers.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "tests/bench/latencies.h"
#include "tests/bench/loaded_daemon.h"
#include "tests/integration/processes.h"

namespace tandem::bench {
namespace {

absl::Time MadeAt(const v1::JobEvent& event) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(event.time()));
}

// The events of all watchers in a window. Thread-safe.
class Receipts {
 public:
  void Add(const v1::JobEvent& event) {
    const absl::Time now = absl::Now();
    since_made_.Add(now - MadeAt(event));
    MutexLock lock(&mutex_);
    const absl::Time first = first_.try_emplace(event.sequence(), now).first->second;
    since_first_.Add(now - first);
  }

  const Latencies& since_made() const { return since_made_; }
  const Latencies& since_first() const { return since_first_; }
  int64_t events() const {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(first_.size());
  }

 private:
  // The worker's report, its way to the daemon and the commit are in it.
  Latencies since_made_;
  // Measured from the first watcher's receipt.
  Latencies since_first_;
  mutable Mutex mutex_;
  // The first watcher's receipt of each event.
  std::map<int64_t, absl::Time> first_ ABSL_GUARDED_BY(mutex_);
};

// A watcher of the events after a number, until it is stopped.
class Watch : public grpc::ClientReadReactor<v1::JobEvent> {
 public:
  Watch(const LoadedDaemon& daemon, v1::JobService::Stub* stub, const std::string& job, int64_t after,
        const std::atomic<Receipts*>* receipts)
      : context_(daemon.NewContext(absl::Hours(1))), last_(after), receipts_(receipts) {
    request_.set_name(job);
    request_.set_after_sequence(after);
    stub->async()->WatchJob(context_.get(), &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    receipts_->load()->Add(event_);
    MutexLock lock(&mutex_);
    is_whole_ = is_whole_ && event_.sequence() == last_ + 1;
    last_ = event_.sequence();
    has_begun_ = true;
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    MutexLock lock(&mutex_);
    status_ = FromGrpc(status);
    done_ = true;
  }

  bool has_begun() const {
    MutexLock lock(&mutex_);
    return has_begun_;
  }

  // Breaks the stream off. An error where it had ended, or left something out.
  absl::Status Stop() {
    context_->TryCancel();
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&done_));
    if (!absl::IsCancelled(status_))
      return absl::InternalError(absl::StrCat("a stream ended: ", status_.message()));
    return is_whole_ ? absl::OkStatus()
                     : absl::DataLossError("a watcher did not get every event once and in order");
  }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  v1::WatchJobRequest request_;
  v1::JobEvent event_;
  mutable Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_);
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_whole_ ABSL_GUARDED_BY(mutex_) = true;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // The counter of its events.
  const std::atomic<Receipts*>* const receipts_;
};

// Returns the steps per second between two times, by the job's own reports. 0 with fewer than two reports.
double StepsPerSecond(const std::vector<v1::JobEvent>& events, absl::Time begin, absl::Time end) {
  const v1::JobEvent* first = nullptr;
  const v1::JobEvent* last = nullptr;
  for (const v1::JobEvent& event : events) {
    if (!event.has_progress() || MadeAt(event) < begin || MadeAt(event) > end) continue;
    if (first == nullptr) first = &event;
    last = &event;
  }
  if (first == last) return 0;
  return static_cast<double>(last->progress().step() - first->progress().step()) /
         absl::ToDoubleSeconds(MadeAt(*last) - MadeAt(*first));
}

class Measurement {
 public:
  explicit Measurement(const WatchersSettings& settings) : settings_(settings), daemon_(/*cpu_devices=*/1) {}

  absl::Status Run() {
    if (settings_.daemon_core >= 0) TANDEM_RETURN_IF_ERROR(PinProcess(0, settings_.daemon_core));
    TANDEM_RETURN_IF_ERROR(daemon_.Start());
    TANDEM_ASSIGN_OR_RETURN(const v1::Job job, daemon_.StartEndlessJob());
    job_ = job.name();
    if (settings_.training_core >= 0) {
      for (const pid_t worker : daemon_.process().Workers()) {
        TANDEM_RETURN_IF_ERROR(PinProcess(worker, settings_.training_core));
      }
    }
    // The first steps choose algorithms.
    absl::SleepFor(absl::Seconds(3));
    for (int round = 0; round < settings_.rounds; ++round) {
      const absl::Time begin = absl::Now();
      absl::SleepFor(absl::Seconds(settings_.seconds));
      alone_.emplace_back(begin, absl::Now());
      TANDEM_RETURN_IF_ERROR(WatchOnce());
    }
    return Report();
  }

 private:
  absl::Status WatchOnce() {
    std::vector<std::unique_ptr<v1::JobService::Stub>> stubs;
    const int connections = settings_.connections > 0 ? settings_.connections : settings_.watchers;
    for (int i = 0; i < connections; ++i) stubs.push_back(daemon_.NewStub());
    TANDEM_ASSIGN_OR_RETURN(const v1::Job job, daemon_.Get(job_));
    // Events during the start of the watchers are not counted.
    Receipts early;
    std::atomic<Receipts*> receipts = &early;
    std::vector<std::unique_ptr<Watch>> watchers;
    for (int i = 0; i < settings_.watchers; ++i) {
      watchers.push_back(std::make_unique<Watch>(daemon_, stubs[i % connections].get(), job_,
                                                 job.last_sequence(), &receipts));
    }
    const auto all_began = [&] {
      return std::all_of(watchers.begin(), watchers.end(),
                         [](const auto& watcher) { return watcher->has_begun(); });
    };
    const bool began = testing::WaitUntil(all_began);
    receipts = &rounds_.emplace_back();
    const absl::Time begin = absl::Now();
    absl::SleepFor(absl::Seconds(settings_.seconds));
    watched_.emplace_back(begin, absl::Now());
    memory_mib_ = daemon_.MemoryMib();
    absl::Status status =
        began ? absl::OkStatus() : absl::DeadlineExceededError("a watcher got nothing for a minute");
    for (const auto& watcher : watchers) status.Update(watcher->Stop());
    return status;
  }

  absl::StatusOr<std::vector<v1::JobEvent>> ReadLog() {
    const auto stub = daemon_.NewStub();
    v1::CancelJobRequest cancel;
    cancel.set_name(job_);
    v1::Job job;
    TANDEM_RETURN_IF_ERROR(
        FromGrpc(stub->CancelJob(daemon_.NewContext(absl::Minutes(1)).get(), cancel, &job)));
    v1::WatchJobRequest request;
    request.set_name(job_);
    std::vector<v1::JobEvent> events;
    const auto context = daemon_.NewContext(absl::Minutes(1));
    const auto reader = stub->WatchJob(context.get(), request);
    for (v1::JobEvent event; reader->Read(&event);) events.push_back(event);
    TANDEM_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    return events;
  }

  absl::Status Report() {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<v1::JobEvent> events, ReadLog());
    double alone_speed = 0;
    double watched_speed = 0;
    std::string table = Latencies::TableHead();
    for (int round = 0; round < settings_.rounds; ++round) {
      const double alone = StepsPerSecond(events, alone_[round].first, alone_[round].second);
      const double watched = StepsPerSecond(events, watched_[round].first, watched_[round].second);
      alone_speed += alone / settings_.rounds;
      watched_speed += watched / settings_.rounds;
      const Receipts& receipts = rounds_[round];
      std::cout << nlohmann::ordered_json{{"bench", "watchers"},
                                          {"round", round},
                                          {"watchers", settings_.watchers},
                                          {"events", receipts.events()},
                                          {"since_made", receipts.since_made().ToJson()},
                                          {"since_first_watcher", receipts.since_first().ToJson()},
                                          {"steps_per_second_alone", alone},
                                          {"steps_per_second_watched", watched},
                                          {"daemon_mib", memory_mib_}}
                       .dump()
                << std::endl;
      absl::StrAppend(
          &table, receipts.since_made().ToRow(absl::StrCat("round ", round, ", since it was made")),
          receipts.since_first().ToRow(absl::StrCat("round ", round, ", since the first had it")));
    }
    std::cout << table
              << absl::StrFormat("training: %.1f steps/s without watchers, %.1f with %d: %+.2f %%\n",
                                 alone_speed, watched_speed, settings_.watchers,
                                 100 * (watched_speed / alone_speed - 1));
    return absl::OkStatus();
  }

  const WatchersSettings settings_;
  LoadedDaemon daemon_;
  std::string job_;
  // The windows of each round.
  std::vector<std::pair<absl::Time, absl::Time>> alone_;
  std::vector<std::pair<absl::Time, absl::Time>> watched_;
  // A deque, because its elements never move.
  std::deque<Receipts> rounds_;
  double memory_mib_ = 0;
};

}  // namespace

absl::Status MeasureWatchers(const WatchersSettings& settings) { return Measurement(settings).Run(); }

}  // namespace tandem::bench
