#include "server/jobs/job_retention.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/records.h"

namespace tandem {
namespace {

constexpr size_t kBatch = 16;
// The pause between batches. Meanwhile the deleted jobs' folders are removed.
constexpr absl::Duration kBatchPause = absl::Seconds(1);
// The pause after the last batch. Each batch reads all jobs that have not ended, so jobs that end one after
// another share a batch.
constexpr absl::Duration kPause = absl::Minutes(1);
constexpr absl::Duration kRetry = absl::Minutes(10);
// Somebody may set the clock meanwhile, or the power may fail.
constexpr absl::Duration kLongestWait = absl::Minutes(10);
constexpr int kPageSize = 1000;

absl::Time EndOf(const v1::Job& job) {
  return absl::FromUnixSeconds(job.end_time().seconds()) + absl::Nanoseconds(job.end_time().nanos());
}

}  // namespace

JobRetention::JobRetention(JobMachine* jobs, const Options& options, const Clock* clock, Listener listener)
    : jobs_(jobs),
      keep_(options.keep),
      restored_(options.restored),
      clock_(clock),
      listener_(std::move(listener)),
      watch_({.path = options.clock_file,
              .boot_id = options.boot_id,
              .longest_age = options.keep,
              .env = options.env},
             clock) {}

JobRetention::~JobRetention() { Stop(); }

absl::Duration JobRetention::DueOf(const v1::Job& job) const {
  return std::max(watch_.KnownAt(EndOf(job)), std::min(watch_.KnownAt(restored_), started_)) + keep_;
}

void JobRetention::Start() {
  started_ = LookAtClock();
  thread_ = std::thread([this] { Run(); });
}

void JobRetention::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    woken_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void JobRetention::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
}

void JobRetention::OnTerminal(const v1::Job& job) {
  const absl::Duration age = std::max(clock_->Now() - EndOf(job), absl::ZeroDuration());
  MutexLock lock(&mutex_);
  LookLocked(job.sweep().empty() ? job.name() : job.sweep(), KnownNow() - age + keep_);
  // This job may have been the last that kept its source.
  const std::string& source = job.spec().initial_weights().artifact().job();
  if (!source.empty()) LookLocked(source, KnownNow());
}

void JobRetention::Look(const std::string& name, absl::Duration at) {
  MutexLock lock(&mutex_);
  LookLocked(name, at);
}

void JobRetention::LookLocked(const std::string& name, absl::Duration at) {
  const auto [found, is_new] = times_.emplace(name, at);
  if (!is_new) {
    due_.erase({found->second, name});
    found->second = at;
  }
  due_.emplace(at, name);
  if (std::max(at, not_before_) < next_look_) woken_ = true;
}

absl::Duration JobRetention::LookAtClock() {
  const absl::Duration now = watch_.Look();
  if (!watch_.news().empty()) {
    listener_.clock_news(watch_.news());
    // Timestamps that seemed to be in the future may now be in the past.
    find_at_ = -absl::InfiniteDuration();
  }
  TellOfFile();
  MutexLock lock(&mutex_);
  offset_ = watch_.offset();
  return now;
}

void JobRetention::TellOfFile() {
  const absl::Status& written = watch_.written();
  if (!written.ok() && !told_of_file_) {
    listener_.clock_news(
        absl::StrCat("what the clock was cannot be noted, so that ended jobs may be kept for longer "
                     "once the daemon has been started anew: ",
                     written.message()));
  }
  told_of_file_ = !written.ok();
}

absl::Duration JobRetention::KnownNow() const { return offset_ + clock_->Elapsed(); }

void JobRetention::Run() {
  do {
    // Deletes by this look's time, even if the clock is set right after.
    const absl::Duration now = LookAtClock();
    if (now >= find_at_) FindEnded(now);
    DeleteDue(now);
  } while (AwaitDue());
  watch_.Look(/*last=*/true);
}

void JobRetention::FindEnded(absl::Duration now) {
  find_at_ = absl::InfiniteDuration();
  JobQuery query;
  query.states = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED};
  query.descending = false;
  query.page_size = kPageSize;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    const absl::StatusOr<JobPage> page = jobs_->List(query);
    if (!page.ok()) {
      listener_.failed(0, "", page.status());
      // "" names no job; the entry only causes another look.
      find_at_ = now + kRetry;
      Look("", find_at_);
      return;
    }
    for (const v1::Job& job : page->jobs) {
      Look(job.sweep().empty() ? job.name() : job.sweep(), DueOf(job));
    }
    if (page->next_page_token.empty()) return;
    query.page_token = page->next_page_token;
  }
}

bool JobRetention::AwaitDue() {
  MutexLock lock(&mutex_);
  const absl::Duration now = KnownNow();
  next_look_ = due_.empty() ? absl::InfiniteDuration() : std::max(due_.begin()->first, not_before_);
  if (next_look_ > now) {
    mutex_.AwaitWithTimeout(absl::Condition(&woken_), std::min(next_look_ - now, kLongestWait));
  }
  woken_ = false;
  // Until the next wait, nobody needs to wake the thread.
  next_look_ = -absl::InfiniteDuration();
  return !stopping_;
}

void JobRetention::DeleteDue(absl::Duration now) {
  // A name that becomes due from here on gets a new entry, even if it is in the batch.
  std::vector<std::string> batch;
  {
    MutexLock lock(&mutex_);
    if (now < not_before_) return;
    while (batch.size() < kBatch && !due_.empty() && due_.begin()->first <= now) {
      batch.push_back(due_.begin()->second);
      times_.erase(batch.back());
      due_.erase(due_.begin());
    }
    if (batch.empty()) return;
    not_before_ = now + (batch.size() == kBatch ? kBatchPause : std::min(kPause, keep_));
  }
  Delete(batch, now);
  TellOfFailures(now);
}

void JobRetention::Delete(const std::vector<std::string>& batch, absl::Duration now) {
  std::set<std::string> needed;
  const absl::Status looked = jobs_->VisitNonTerminalJobs([&needed](const v1::Job& job) {
    const std::string& source = job.spec().initial_weights().artifact().job();
    if (!source.empty()) needed.insert(source);
  });
  for (const std::string& name : batch) {
    bool stopping;
    {
      MutexLock lock(&mutex_);
      stopping = stopping_;
    }
    // The next daemon finds the rest.
    if (stopping) return;
    const absl::Status status = looked.ok() ? Consider(name, needed, now) : looked;
    if (!status.ok()) Fail(name, status, now);
  }
}

void JobRetention::Fail(const std::string& name, const absl::Status& why, absl::Duration now) {
  if (failed_++ == 0) {
    first_failed_ = name;
    why_failed_ = why;
  }
  Look(name, now + kRetry);
}

void JobRetention::TellOfFailures(absl::Duration now) {
  {
    MutexLock lock(&mutex_);
    // On a full disk all deletions fail, so report once.
    if (!due_.empty() && due_.begin()->first <= now) return;
  }
  if (failed_ > 0) listener_.failed(std::exchange(failed_, 0), first_failed_, why_failed_);
}

absl::Status JobRetention::Consider(const std::string& name, const std::set<std::string>& needed,
                                    absl::Duration now) {
  if (name.empty()) return absl::OkStatus();
  const absl::Status status =
      absl::StartsWith(name, "sweeps/") ? ConsiderSweep(name, needed, now) : ConsiderJob(name, needed, now);
  // The job was already deleted, or it runs again and its end will be observed.
  if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) return absl::OkStatus();
  return status;
}

absl::Status JobRetention::ConsiderJob(const std::string& name, const std::set<std::string>& needed,
                                       absl::Duration now) {
  TANDEM_ASSIGN_OR_RETURN(const v1::Job job, jobs_->Get(JobId(name)));
  if (!IsTerminal(job.state())) return absl::OkStatus();
  const absl::Duration due = DueOf(job);
  if (!job.sweep().empty() || due > now) {
    Look(job.sweep().empty() ? name : job.sweep(), due);
    return absl::OkStatus();
  }
  if (needed.count(name) != 0) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(Await([&](auto done) { jobs_->Delete(JobId(name), std::move(done)); }));
  listener_.deleted(name);
  return absl::OkStatus();
}

absl::Status JobRetention::ConsiderSweep(const std::string& name, const std::set<std::string>& needed,
                                         absl::Duration now) {
  TANDEM_ASSIGN_OR_RETURN(const StoredSweep sweep, jobs_->GetSweep(SweepId(name)));
  // All its jobs were deleted one by one.
  if (sweep.jobs.empty()) return absl::OkStatus();
  absl::Duration due = -absl::InfiniteDuration();
  bool is_needed = false;
  for (const StoredJob& stored : sweep.jobs) {
    if (!IsTerminal(stored.job.state())) return absl::OkStatus();
    due = std::max(due, DueOf(stored.job));
    is_needed = is_needed || needed.count(stored.job.name()) != 0;
  }
  if (due > now) {
    Look(name, due);
    return absl::OkStatus();
  }
  if (is_needed) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(Await([&](auto done) { jobs_->DeleteSweep(SweepId(name), std::move(done)); }));
  listener_.deleted(name);
  return absl::OkStatus();
}

absl::Status JobRetention::Await(absl::FunctionRef<void(absl::AnyInvocable<void(absl::Status)>)> ask) {
  Mutex mutex;
  std::optional<absl::Status> answer;
  bool is_answered = false;
  ask([&](absl::Status status) {
    MutexLock lock(&mutex);
    answer = std::move(status);
    is_answered = true;
  });
  MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&is_answered));
  return *answer;
}

}  // namespace tandem
