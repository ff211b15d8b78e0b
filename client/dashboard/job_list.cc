#include "client/dashboard/job_list.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "client/dashboard/job_row.h"
#include "client/lib/steady_now.h"

namespace tandem::dashboard {
namespace {

// The interval between two reads of the list: this time, or twenty times the time of a read if that is
// longer.
constexpr absl::Duration kListInterval = absl::Seconds(2);
constexpr int kListPart = 20;
constexpr absl::Duration kJobInterval = absl::Seconds(1);
// The largest number of jobs in a row of reads. A user may make 100 calls a second.
constexpr size_t kMostRead = 20;
constexpr size_t kSparkLosses = 32;

bool IsActive(v1::JobState state) {
  return state != v1::JOB_STATE_SUCCEEDED && state != v1::JOB_STATE_FAILED &&
         state != v1::JOB_STATE_CANCELLED && state != v1::JOB_STATE_PAUSED && state != v1::JOB_STATE_QUEUED;
}

}  // namespace

JobList::~JobList() = default;

void JobList::Enter() {
  absl::MutexLock threads(&threads_mutex_);
  if (views_++ > 0) return;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = false;
    has_all_ = false;
    connection_ = absl::UnavailableError("connecting");
  }
  reader_.emplace([this] { Read(); });
  hearer_.emplace([this] { Hear(); });
}

void JobList::Leave() {
  absl::MutexLock threads(&threads_mutex_);
  if (--views_ > 0) return;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  reader_->join();
  hearer_->join();
  reader_.reset();
  hearer_.reset();
}

bool JobList::IsStopped() {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

JobList::Changes JobList::Await(int64_t version, absl::Duration at_most) {
  absl::MutexLock lock(&mutex_);
  const auto is_new = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return has_all_ && version_ > version; };
  mutex_.AwaitWithTimeout(absl::Condition(&is_new), at_most);
  Changes changes{.version = version, .rows = {}, .deleted = {}, .connection = connection_};
  if (!is_new()) return changes;
  changes.version = version_;
  for (const auto& [name, row] : rows_) {
    if (row.version > version) changes.rows.push_back(row.json);
  }
  for (auto gone = deleted_.upper_bound(version); gone != deleted_.end(); ++gone)
    changes.deleted.push_back(gone->second);
  return changes;
}

void JobList::Put(const v1::Job& job) {
  const auto [place, is_new] = rows_.try_emplace(job.name());
  Row& row = place->second;
  // A restored backup may bring a job back.
  if (is_new) std::erase_if(deleted_, [&](const auto& gone) { return gone.second == job.name(); });
  // An attempt may begin at an earlier step.
  if (job.has_progress() && job.progress().step() != row.step) {
    row.step = job.progress().step();
    row.losses.push_back(job.progress().training().loss());
    if (row.losses.size() > kSparkLosses) row.losses.pop_front();
  }
  row.is_active = IsActive(job.state());
  std::string json = JobRow(job, row.losses, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()))
                         .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (json == row.json) return;
  row.json = std::move(json);
  row.version = ++version_;
}

void JobList::Remove(const std::string& name) {
  if (rows_.erase(name) > 0) deleted_.emplace(++version_, name);
}

void JobList::SetConnection(const absl::Status& status) {
  if (status == connection_) return;
  connection_ = status;
  // Every view reports the change.
  ++version_;
}

absl::Status JobList::ReadAll() {
  const absl::StatusOr<std::vector<v1::Job>> jobs = client_->ListJobs({});
  if (!jobs.ok()) return jobs.status();
  std::set<std::string> names;
  absl::MutexLock lock(&mutex_);
  for (const v1::Job& job : *jobs) {
    names.insert(job.name());
    Put(job);
  }
  std::vector<std::string> gone;
  for (const auto& [name, row] : rows_) {
    if (!names.contains(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) Remove(name);
  if (!std::exchange(has_all_, true)) ++version_;
  SetConnection(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status JobList::ReadOne(const std::string& name) {
  const absl::StatusOr<v1::Job> job = client_->GetJob(name);
  absl::MutexLock lock(&mutex_);
  if (job.ok()) {
    Put(*job);
  } else if (absl::IsNotFound(job.status())) {
    Remove(name);
  } else {
    return job.status();
  }
  return absl::OkStatus();
}

void JobList::Read() {
  absl::Duration next_list, next_jobs;
  size_t turn = 0;
  while (!IsStopped()) {
    absl::Status status;
    if (const absl::Duration begin = client::SteadyNow(); begin >= next_list) {
      status = ReadAll();
      const absl::Duration end = client::SteadyNow();
      next_list = end + std::max(kListInterval, kListPart * (end - begin));
      if (!status.ok()) next_list = end + kJobInterval;
      next_jobs = end + kJobInterval;
    }
    std::set<std::string> names;
    {
      absl::MutexLock lock(&mutex_);
      if (!status.ok()) SetConnection(status);
      names = std::exchange(heard_, {});
      if (client::SteadyNow() >= next_jobs) {
        std::vector<std::string> active;
        for (const auto& [name, row] : rows_) {
          if (row.is_active) active.push_back(name);
        }
        for (size_t i = 0; i < std::min(active.size(), kMostRead); ++i)
          names.insert(active[turn++ % active.size()]);
        next_jobs = client::SteadyNow() + kJobInterval;
      }
    }
    for (const std::string& name : names) {
      if (status.ok()) status = ReadOne(name);
    }
    absl::MutexLock lock(&mutex_);
    SetConnection(status);
    const auto has_work = [this]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_ || !heard_.empty(); };
    mutex_.AwaitWithTimeout(absl::Condition(&has_work), std::min(next_jobs, next_list) - client::SteadyNow());
  }
}

void JobList::Hear() {
  client::ObserverWhile listening([this] { return !IsStopped(); });
  while (!IsStopped()) {
    // The call ends by itself if the connection is lost for long, or if the token is refused.
    client_
        ->WatchJobs(-1, listening,
                    [this](const v1::WatchJobsResponse& change) {
                      absl::MutexLock lock(&mutex_);
                      heard_.insert(change.job());
                    })
        .IgnoreError();
    for (int i = 0; i < 20 && !IsStopped(); ++i) absl::SleepFor(absl::Milliseconds(100));
  }
}

}  // namespace tandem::dashboard
