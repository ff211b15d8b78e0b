#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "google/protobuf/util/time_util.h"
#include "server/store/records.h"

namespace tandem {
namespace {

// How soon a job is tried again that the store could not make STARTING.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

Scheduler::Scheduler(JobMachine* jobs, Inventory* inventory, const PlacementPolicy* policy,
                     WorkerStarter* starter)
    : jobs_(jobs), inventory_(inventory), policy_(policy), starter_(starter) {}

Scheduler::~Scheduler() { Stop(); }

absl::Status Scheduler::Restore(const std::vector<v1::Job>& jobs) {
  std::vector<std::string> problems;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (const v1::Job& job : jobs) {
    if (job.state() == v1::JOB_STATE_QUEUED) {
      Enqueue(job);
      continue;
    }
    if (const absl::Status status = RestoreLease(job); !status.ok()) {
      code = status.code();
      problems.emplace_back(status.message());
    }
  }
  return absl::Status(code, absl::StrJoin(problems, "; "));
}

absl::Status Scheduler::RestoreLease(const v1::Job& job) {
  const std::string id = JobId(job.name());
  const std::vector<v1::Device> devices = inventory_->Devices();
  std::vector<std::string> known;
  std::vector<std::string> missing;
  for (const std::string& name : job.devices()) {
    const bool found = std::any_of(devices.begin(), devices.end(),
                                   [&name](const v1::Device& device) { return device.name() == name; });
    (found ? known : missing).push_back(name);
  }
  if (!known.empty()) {
    if (const absl::Status acquired = inventory_->Acquire(id, known); !acquired.ok()) {
      return absl::Status(acquired.code(), absl::StrCat("cannot restore the lease of \"", job.name(),
                                                        "\": ", acquired.message()));
    }
  }
  {
    MutexLock lock(&mutex_);
    leases_[id] = job.attempt();
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("\"", job.name(), "\" runs on ", absl::StrJoin(missing, ", "),
                                          ", which this daemon was started without"));
}

void Scheduler::Start() {
  {
    MutexLock lock(&mutex_);
    wake_ = true;
  }
  MutexLock lock(&thread_mutex_);
  thread_ = std::thread([this] { Run(); });
}

void Scheduler::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  MutexLock lock(&thread_mutex_);
  if (thread_.joinable()) thread_.join();
}

void Scheduler::ReleaseLease(const std::string& job_id, int32_t attempt) {
  MutexLock lock(&mutex_);
  const auto lease = leases_.find(job_id);
  if (lease == leases_.end() || lease->second != attempt) return;
  leases_.erase(lease);
  inventory_->Release(job_id);
  wake_ = true;
}

void Scheduler::OnQueued(const v1::Job& job) { Enqueue(job); }

void Scheduler::OnTerminal(const v1::Job& job) {
  const std::string id = JobId(job.name());
  MutexLock lock(&mutex_);
  queue_.remove_if([&id](const Entry& entry) { return entry.job.id == id; });
  // The others' places have changed.
  wake_ = true;
}

void Scheduler::Enqueue(const v1::Job& job) {
  Entry entry;
  entry.job.id = JobId(job.name());
  entry.job.replicas = std::max(1, job.spec().replicas().count());
  entry.job.device_kind = job.spec().replicas().device_kind();
  entry.job.memory_bytes = job.planned_memory_bytes();
  entry.create_time =
      absl::FromUnixMicros(google::protobuf::util::TimeUtil::TimestampToMicroseconds(job.create_time()));

  MutexLock lock(&mutex_);
  const bool known = std::any_of(queue_.begin(), queue_.end(),
                                 [&entry](const Entry& other) { return other.job.id == entry.job.id; });
  if (known) return;
  auto place = queue_.end();
  if (job.attempt() > 0) {
    // It was in the queue before, so those created later stand behind it.
    place = std::find_if(queue_.begin(), queue_.end(),
                         [&entry](const Entry& other) { return other.create_time > entry.create_time; });
  }
  queue_.insert(place, std::move(entry));
  wake_ = true;
}

void Scheduler::Run() {
  while (true) {
    std::vector<v1::Job> ready;
    bool place;
    {
      MutexLock lock(&mutex_);
      // The store's answer may come while this waits: then it must wait anew, but not for ever.
      const bool retries = retry_;
      const auto has_work = [this, retries]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !ready_.empty() || (stopping_ ? unanswered_ == 0 : wake_ || retry_ != retries);
      };
      if (!mutex_.AwaitWithTimeout(absl::Condition(&has_work),
                                   retries ? kRetryAfter : absl::InfiniteDuration())) {
        wake_ = true;
      }
      if (stopping_ && unanswered_ == 0 && ready_.empty()) return;
      ready.swap(ready_);
      place = wake_ && !stopping_;
      if (place) wake_ = retry_ = false;
    }
    for (const v1::Job& job : ready) {
      std::vector<v1::Device> devices;
      const std::vector<v1::Device> all = inventory_->Devices();
      for (const std::string& name : job.devices()) {
        for (const v1::Device& device : all) {
          if (device.name() == name) devices.push_back(device);
        }
      }
      starter_->Start(job, devices);
    }
    if (place) Place();
  }
}

void Scheduler::Place() {
  Snapshot snapshot;
  snapshot.devices = inventory_->Devices();
  {
    MutexLock lock(&mutex_);
    for (const Entry& entry : queue_) {
      if (!entry.starting) snapshot.queue.push_back(entry.job);
    }
  }
  Decision decision = policy_->Decide(snapshot);
  jobs_->SetWaiting(std::move(decision.waiting));
  for (Placement& placement : decision.placements) {
    {
      MutexLock lock(&mutex_);
      const auto entry = std::find_if(queue_.begin(), queue_.end(), [&placement](const Entry& other) {
        return other.job.id == placement.job_id && !other.starting;
      });
      // It has ended since; or it waits again while the process of its last attempt still holds its devices,
      // whose return wakes this thread.
      if (entry == queue_.end() || !inventory_->Acquire(placement.job_id, placement.devices).ok()) continue;
      entry->starting = true;
      ++unanswered_;
    }
    jobs_->Schedule(
        placement.job_id, std::move(placement.devices),
        [this, id = placement.job_id](absl::StatusOr<v1::Job> job) { Scheduled(id, std::move(job)); });
  }
}

void Scheduler::Scheduled(const std::string& id, absl::StatusOr<v1::Job> job) {
  MutexLock lock(&mutex_);
  --unanswered_;
  const auto entry =
      std::find_if(queue_.begin(), queue_.end(), [&id](const Entry& other) { return other.job.id == id; });
  if (job.ok()) {
    if (entry != queue_.end()) queue_.erase(entry);
    leases_[id] = job->attempt();
    ready_.push_back(*std::move(job));
    return;
  }
  inventory_->Release(id);
  const bool gone = absl::IsNotFound(job.status()) || absl::IsFailedPrecondition(job.status());
  if (entry != queue_.end()) {
    if (gone) {
      queue_.erase(entry);
    } else {
      entry->starting = false;
    }
  }
  if (gone) {
    wake_ = true;
  } else {
    retry_ = true;
  }
}

}  // namespace tandem
