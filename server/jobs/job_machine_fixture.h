#ifndef TANDEM_SERVER_JOBS_JOB_MACHINE_FIXTURE_H_
#define TANDEM_SERVER_JOBS_JOB_MACHINE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "gtest/gtest.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/settable_clock.h"
#include "server/jobs/transitions.h"
#include "server/store/awaited.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {

// For tests: records the notifications, such as "queued jobs/a", but no starts.
class RecordingObserver : public JobObserver {
 public:
  void OnMoved(const v1::Job& job) override {
    Note(IsTerminal(job.state()) ? "terminal" : absl::AsciiStrToLower(StateName(job.state())), job);
  }
  void OnDeleted(const v1::Job& job) override { Note("deleted", job); }

  // Returns the notifications since the last call.
  std::vector<std::string> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(heard_, {});
  }

 private:
  void Note(absl::string_view what, const v1::Job& job) {
    EXPECT_TRUE(job.has_spec());
    if (job.state() == v1::JOB_STATE_STARTING || job.state() == v1::JOB_STATE_RUNNING) return;
    MutexLock lock(&mutex_);
    heard_.push_back(absl::StrCat(what, " ", job.name()));
  }

  Mutex mutex_;
  std::vector<std::string> heard_ ABSL_GUARDED_BY(mutex_);
};

// Creates a worker's event.
inline internal::v1::WorkerEvent MakeWorkerEvent(int64_t sequence) {
  internal::v1::WorkerEvent event;
  event.set_worker_sequence(sequence);
  return event;
}
inline internal::v1::WorkerEvent Started(int64_t sequence) {
  internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
  event.mutable_started();
  return event;
}
inline internal::v1::WorkerEvent ProgressAt(int64_t sequence, int64_t step) {
  internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
  event.mutable_report()->mutable_progress()->set_step(step);
  return event;
}
inline internal::v1::WorkerEvent Finished(int64_t sequence, v1::JobState state,
                                          const std::string& message = "") {
  internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
  event.mutable_finished()->set_state(state);
  event.mutable_finished()->set_message(message);
  return event;
}

// For tests: a job machine with its own store and folder. Its methods block until done.
class JobMachineFixture {
 public:
  JobMachineFixture() { Open(); }
  ~JobMachineFixture() { Close(); }

  // Opens the folder like a new daemon.
  void Reopen() {
    Close();
    Open();
  }

  std::string DatabasePath() const { return folder_.path() + "/tandem.db"; }
  JobMachine& machine() { return *machine_; }
  Store& store() { return *store_; }
  EventHub& hub() { return *hub_; }
  // The passing time.
  FakeClock& clock() { return clock_; }
  // The machine's clock. Shows clock()'s time until set.
  SettableClock& settable_clock() { return settable_clock_; }
  RecordingObserver& observer() { return observer_; }

  absl::StatusOr<v1::Job> Create(const std::string& name, const std::string& request_id = "") {
    JobMachine::NewJob job;
    job.spec.set_name(name);
    job.submitted_spec = job.spec;
    job.request_id = request_id;
    return Create(std::move(job));
  }
  absl::StatusOr<v1::Job> Create(JobMachine::NewJob job) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Create(std::move(job), done.Done());
    return done.Get();
  }
  // Creates a job and returns its id.
  std::string NewJob(const std::string& name = "job") {
    const absl::StatusOr<v1::Job> job = Create(name);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? JobId(job->name()) : "";
  }
  absl::StatusOr<v1::Job> Cancel(const std::string& id) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Cancel(id, v1::STATE_REASON_CANCEL_REQUESTED, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> Pause(const std::string& id) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Pause(id, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> Resume(const std::string& id) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Resume(id, /*max_queued_jobs=*/0, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> Preempt(const std::string& id) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Preempt(id, "makes room", done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> SetPriority(const std::string& id, int priority) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->SetPriority(id, priority, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> AddNotice(const std::string& id, const std::string& message) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->AddNotice(id, message, done.Done());
    return done.Get();
  }
  absl::Status Delete(const std::string& id) {
    Awaited<absl::Status> done;
    machine_->Delete(id, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> Schedule(const std::string& id) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Schedule(id, {"devices/cpu:0", "devices/cpu:1"}, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> Requeue(const std::string& id, int32_t attempt) {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->Requeue(id, attempt, done.Done());
    return done.Get();
  }
  absl::StatusOr<v1::Job> WorkerLost(const std::string& id, int32_t attempt,
                                     const std::string& message = "killed") {
    Awaited<absl::StatusOr<v1::Job>> done;
    machine_->WorkerLost(id, attempt, v1::STATE_REASON_WORKER_LOST, message, done.Done());
    return done.Get();
  }
  absl::StatusOr<JobMachine::WorkerPosition> Apply(const std::string& id, int32_t attempt,
                                                   std::vector<internal::v1::WorkerEvent> events) {
    Awaited<absl::StatusOr<JobMachine::WorkerPosition>> done;
    machine_->ApplyWorkerEvents(id, attempt, std::move(events), done.Done());
    return done.Get();
  }

  // Returns a job's whole log.
  std::vector<v1::JobEvent> Log(const std::string& id) {
    absl::StatusOr<EventPage> page = store_->ReadEvents(id, 0, 1000000);
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? std::move(page->events) : std::vector<v1::JobEvent>();
  }

  // Creates a job whose worker trains and has sent one event.
  std::string RunningJob() {
    const std::string id = NewJob();
    EXPECT_TRUE(Schedule(id).ok());
    EXPECT_TRUE(Apply(id, 1, {Started(1)}).ok());
    return id;
  }
  v1::Job Get(const std::string& id) {
    const absl::StatusOr<v1::Job> job = machine_->Get(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : v1::Job();
  }
  // Checks a log: its numbers have no gaps, only the last event may be terminal, and each state follows the
  // previous state up to the job's state.
  void CheckLog(const std::string& id) {
    const std::vector<v1::JobEvent> log = Log(id);
    const v1::Job job = Get(id);
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    for (size_t i = 0; i < log.size(); ++i) {
      EXPECT_EQ(log[i].sequence(), static_cast<int64_t>(i) + 1);
      EXPECT_EQ(log[i].job(), job.name());
      EXPECT_TRUE(log[i].has_time());
      if (log[i].has_state_change()) {
        EXPECT_EQ(log[i].state_change().from(), state);
        state = log[i].state_change().to();
      }
      EXPECT_EQ(log[i].terminal(), IsTerminal(state));
      if (log[i].terminal()) {
        EXPECT_EQ(i + 1, log.size());
      }
    }
    EXPECT_EQ(state, job.state());
    EXPECT_EQ(job.last_sequence(), static_cast<int64_t>(log.size()));
  }

 private:
  void Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(DatabasePath());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    hub_ = std::make_unique<EventHub>(store_.get());
    machine_ =
        std::make_unique<JobMachine>(store_.get(), hub_.get(), &settable_clock_, folder_.path() + "/jobs");
    machine_->AddObserver(&observer_);
  }
  void Close() {
    store_->Close();
    machine_.reset();
    hub_.reset();
    store_.reset();
  }

  TemporaryFolder folder_;
  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  SettableClock settable_clock_{&clock_};
  RecordingObserver observer_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<JobMachine> machine_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_MACHINE_FIXTURE_H_
