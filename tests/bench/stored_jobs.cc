#include "tests/bench/stored_jobs.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/store/store.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem::bench {
namespace {

// The number of jobs that are created at the same time. The store commits waiting jobs together.
constexpr int64_t kAtOnce = 256;
constexpr int kReports = 4;

using google::protobuf::util::TimeUtil;

// Returns the events of a small job's worker, from its start to its end.
std::vector<internal::v1::WorkerEvent> Training() {
  std::vector<internal::v1::WorkerEvent> events;
  const auto next = [&events]() -> internal::v1::WorkerEvent& {
    internal::v1::WorkerEvent& event = events.emplace_back();
    event.set_worker_sequence(static_cast<int64_t>(events.size()));
    *event.mutable_time() = TimeUtil::GetCurrentTime();
    return event;
  };
  next().mutable_started();
  for (int i = 1; i <= kReports; ++i) {
    v1::Progress& progress = *next().mutable_report()->mutable_progress();
    progress.set_epoch(1);
    progress.set_epochs(1);
    progress.set_step(i);
    progress.set_steps(kReports);
    progress.mutable_training()->set_loss(1.0 / i);
  }
  v1::EpochSummary& epoch = *next().mutable_report()->mutable_epoch();
  epoch.set_epoch(1);
  epoch.set_step(kReports);
  internal::v1::Finished& finished = *next().mutable_finished();
  finished.set_state(v1::JOB_STATE_SUCCEEDED);
  finished.set_reason(v1::STATE_REASON_COMPLETED);
  finished.set_message("Training completed.");
  return events;
}

// Makes jobs, some at a time.
class Maker {
 public:
  Maker(const std::string& state_folder, Store* store, const v1::Job& like)
      : hub_(store), machine_(store, &hub_, Clock::Real(), state_folder + "/jobs") {
    job_.spec = like.spec();
    job_.planned_memory_bytes = like.planned_memory_bytes();
    job_.planned_operations = like.planned_operations();
  }

  absl::StatusOr<std::vector<std::string>> Make(int64_t count, bool finished) {
    {
      MutexLock lock(&mutex_);
      made_.clear();
    }
    for (int64_t i = 0; i < count; ++i) {
      {
        MutexLock lock(&mutex_);
        const auto has_room = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return pending_ < kAtOnce; };
        mutex_.Await(absl::Condition(&has_room));
        ++pending_;
      }
      JobMachine::NewJob job = job_;
      machine_.Create(std::move(job), [this, finished](absl::StatusOr<v1::Job> made) {
        if (made.ok() && finished) return Train(made->name());
        Done(made.status(), made.ok() ? made->name() : "");
      });
    }
    MutexLock lock(&mutex_);
    const auto all = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return pending_ == 0; };
    mutex_.Await(absl::Condition(&all));
    TANDEM_RETURN_IF_ERROR(status_);
    return std::move(made_);
  }

 private:
  void Train(const std::string& name) {
    const std::string id = JobId(name);
    machine_.Schedule(id, {"devices/cpu:0"}, [this, id, name](absl::StatusOr<v1::Job> job) {
      if (!job.ok()) return Done(job.status(), "");
      machine_.ApplyWorkerEvents(id, job->attempt(), Training(),
                                 [this, name](const absl::StatusOr<JobMachine::WorkerPosition>& position) {
                                   Done(position.status(), name);
                                 });
    });
  }

  void Done(const absl::Status& status, const std::string& name) {
    MutexLock lock(&mutex_);
    status_.Update(status);
    made_.push_back(name);
    --pending_;
  }

  EventHub hub_;
  JobMachine machine_;
  JobMachine::NewJob job_;
  Mutex mutex_;
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<StoredJobs> StoreJobs(const std::string& state_folder, const v1::Job& like, int64_t finished,
                                     int64_t queued) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::Open(state_folder + "/tandem.db"));
  Maker maker(state_folder, store.get(), like);
  StoredJobs jobs;
  TANDEM_ASSIGN_OR_RETURN(jobs.finished, maker.Make(finished, /*finished=*/true));
  TANDEM_ASSIGN_OR_RETURN(jobs.queued, maker.Make(queued, /*finished=*/false));
  store->Close();
  return jobs;
}

}  // namespace tandem::bench
