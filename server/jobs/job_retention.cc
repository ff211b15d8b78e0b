#include "server/jobs/job_retention.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/pending_result.h"
#include "server/store/records.h"
#include "server/store/timestamps.h"

namespace tandem {
namespace {

constexpr size_t kBatch = 16;
// The pause between batches. Meanwhile the deleted jobs' folders are removed.
constexpr absl::Duration kBatchPause = absl::Seconds(1);
// The pause after the last batch. Each batch reads all jobs that have not ended, so jobs that end one after
// another share a batch.
constexpr absl::Duration kPause = absl::Minutes(1);
constexpr absl::Duration kRetry = absl::Minutes(10);
// Somebody may set the clock meanwhile.
constexpr absl::Duration kLongestWait = absl::Minutes(10);
constexpr int kPageSize = 1000;
// Time to see that the clock is wrong, and to set it.
constexpr absl::Duration kLongestHold = absl::Hours(24);
// A smaller step of the clock is no jump, because clocks are adjusted.
constexpr absl::Duration kTolerance = absl::Minutes(1);
// By this much, a cluster node's clock may be ahead of the daemon's.
constexpr absl::Duration kSkew = absl::Hours(24);

absl::Time EndOf(const v1::Job& job) { return TimeOf(job.end_time()); }

}  // namespace

JobRetention::JobRetention(JobMachine* jobs, const Options& options, const Clock* clock, Listener listener)
    : jobs_(jobs),
      keep_(options.keep),
      hold_(std::min(options.keep, kLongestHold)),
      restored_(options.restored),
      clock_(clock),
      listener_(std::move(listener)),
      steady_since_(clock->Now()),
      origin_(steady_since_ - clock->Elapsed()),
      not_before_(steady_since_ + hold_) {}

JobRetention::~JobRetention() { Stop(); }

absl::Time JobRetention::DueOf(const v1::Job& job, absl::Time now) const {
  const auto past = [&](absl::Time stamp) {
    return stamp > now + kSkew ? std::min(stamp, steady_since_) : stamp;
  };
  // A worker gives the end. Its node's clock may be far back, so the creation is a lower bound.
  return std::max({past(EndOf(job)), past(TimeOf(job.create_time())), past(restored_)}) + keep_;
}

void JobRetention::Start() {
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

void JobRetention::OnMoved(const v1::Job& job) {
  if (!IsTerminal(job.state())) return;
  MutexLock lock(&mutex_);
  // The job's own end proves little: its worker may report late, or have another node's clock.
  const absl::Time now = clock_->Now();
  if (absl::AbsDuration(AheadBy(now)) > kTolerance || absl::AbsDuration(AheadBy(EndOf(job))) > kSkew) {
    was_off_ = woken_ = true;
  }
  LookLocked(job.sweep().empty() ? job.name() : job.sweep(), EndOf(job) + keep_);
  // This job may have been the last that kept its source.
  const std::string& source = job.spec().initial_weights().artifact().job();
  if (!source.empty()) LookLocked(source, now);
}

void JobRetention::Look(const std::string& name, absl::Time at) {
  MutexLock lock(&mutex_);
  LookLocked(name, at);
}

void JobRetention::LookLocked(const std::string& name, absl::Time at) {
  const auto [found, is_new] = times_.emplace(name, at);
  if (!is_new) {
    due_.erase({found->second, name});
    found->second = at;
  }
  due_.emplace(at, name);
  if (std::max(at, not_before_) < next_look_) woken_ = true;
}

absl::Duration JobRetention::AheadBy(absl::Time time) const { return time - (origin_ + clock_->Elapsed()); }

absl::Time JobRetention::LookAtClock() {
  absl::Time now;
  absl::Duration elapsed;
  // A machine that sleeps between the two readings has no wrong clock.
  do {
    elapsed = clock_->Elapsed();
    now = clock_->Now();
  } while (clock_->Elapsed() - elapsed > kTolerance);
  std::string what = "the clock was wrong while a job ended";
  {
    MutexLock lock(&mutex_);
    const absl::Duration ahead = now - (origin_ + elapsed);
    const bool jumped = absl::AbsDuration(ahead) > kTolerance;
    const bool was_off = std::exchange(was_off_, false);
    if (!jumped && !was_off) return now;
    if (jumped) {
      what = absl::StrCat("the clock was set ", ahead < absl::ZeroDuration() ? "back" : "ahead", " by ",
                          absl::FormatDuration(absl::Trunc(absl::AbsDuration(ahead), absl::Seconds(1))));
      origin_ += ahead;
    }
    not_before_ = now + hold_;
  }
  steady_since_ = now;
  // Timestamps that seemed to be in the future may now be in the past.
  find_at_ = absl::InfinitePast();
  listener_.clock_jumped(absl::StrCat(what, "; no job is deleted before ",
                                      absl::FormatTime(absl::RFC3339_sec, now + hold_, absl::UTCTimeZone())));
  return now;
}

void JobRetention::Run() {
  do {
    // Deletes by this look's time, even if the clock is set right after.
    const absl::Time now = LookAtClock();
    if (now >= find_at_) FindEnded(now);
    DeleteDue(now);
  } while (AwaitDue());
}

void JobRetention::FindEnded(absl::Time now) {
  find_at_ = absl::InfiniteFuture();
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
      Look(job.sweep().empty() ? job.name() : job.sweep(), DueOf(job, now));
    }
    if (page->next_page_token.empty()) return;
    query.page_token = page->next_page_token;
  }
}

bool JobRetention::AwaitDue() {
  MutexLock lock(&mutex_);
  const absl::Time now = clock_->Now();
  next_look_ = due_.empty() ? absl::InfiniteFuture() : std::max(due_.begin()->first, not_before_);
  if (next_look_ > now) {
    mutex_.AwaitWithTimeout(absl::Condition(&woken_), std::min(next_look_ - now, kLongestWait));
  }
  woken_ = false;
  // Until the next wait, nobody needs to wake the thread.
  next_look_ = absl::InfinitePast();
  return !stopping_;
}

void JobRetention::DeleteDue(absl::Time now) {
  // A name that becomes due from here on gets a new entry, even if it is in the batch.
  std::vector<std::string> batch;
  {
    MutexLock lock(&mutex_);
    // A job may have ended since LookAtClock while the clock was off. Look again first.
    if (was_off_ || now < not_before_) return;
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

void JobRetention::Delete(const std::vector<std::string>& batch, absl::Time now) {
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

void JobRetention::Fail(const std::string& name, const absl::Status& why, absl::Time now) {
  if (failed_++ == 0) {
    first_failed_ = name;
    why_failed_ = why;
  }
  Look(name, now + kRetry);
}

void JobRetention::TellOfFailures(absl::Time now) {
  {
    MutexLock lock(&mutex_);
    // On a full disk all deletions fail, so report once.
    if (!due_.empty() && due_.begin()->first <= now) return;
  }
  if (failed_ > 0) listener_.failed(std::exchange(failed_, 0), first_failed_, why_failed_);
}

absl::Status JobRetention::Consider(const std::string& name, const std::set<std::string>& needed,
                                    absl::Time now) {
  if (name.empty()) return absl::OkStatus();
  const absl::Status status =
      absl::StartsWith(name, "sweeps/") ? ConsiderSweep(name, needed, now) : ConsiderJob(name, needed, now);
  // The job was already deleted, or it runs again and its end will be observed.
  if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) return absl::OkStatus();
  return status;
}

absl::Status JobRetention::ConsiderJob(const std::string& name, const std::set<std::string>& needed,
                                       absl::Time now) {
  TANDEM_ASSIGN_OR_RETURN(const v1::Job job, jobs_->Get(JobId(name)));
  if (!IsTerminal(job.state())) return absl::OkStatus();
  const absl::Time due = DueOf(job, now);
  if (!job.sweep().empty() || due > now) {
    Look(job.sweep().empty() ? name : job.sweep(), due);
    return absl::OkStatus();
  }
  if (needed.count(name) != 0) return absl::OkStatus();
  const PendingValue<absl::Status> deleted;
  jobs_->Delete(JobId(name), deleted.Callback());
  TANDEM_RETURN_IF_ERROR(deleted.Wait());
  listener_.deleted(name);
  return absl::OkStatus();
}

absl::Status JobRetention::ConsiderSweep(const std::string& name, const std::set<std::string>& needed,
                                         absl::Time now) {
  TANDEM_ASSIGN_OR_RETURN(const StoredSweep sweep, jobs_->GetSweep(SweepId(name)));
  // All its jobs were deleted one by one.
  if (sweep.jobs.empty()) return absl::OkStatus();
  absl::Time due = absl::InfinitePast();
  bool is_needed = false;
  for (const StoredJob& stored : sweep.jobs) {
    if (!IsTerminal(stored.job.state())) return absl::OkStatus();
    due = std::max(due, DueOf(stored.job, now));
    is_needed = is_needed || needed.count(stored.job.name()) != 0;
  }
  if (due > now) {
    Look(name, due);
    return absl::OkStatus();
  }
  if (is_needed) return absl::OkStatus();
  const PendingValue<absl::Status> deleted;
  jobs_->DeleteSweep(SweepId(name), deleted.Callback());
  TANDEM_RETURN_IF_ERROR(deleted.Wait());
  listener_.deleted(name);
  return absl::OkStatus();
}

}  // namespace tandem
