#include "server/sweeps/sweep_pruner.h"

#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "server/store/records.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// Rules that are kept in memory, except the rules of sweeps that train.
constexpr size_t kMostRules = 16;

}  // namespace

SweepPruner::~SweepPruner() { Stop(); }

void SweepPruner::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void SweepPruner::OnEvent(const v1::JobEvent& event) {
  if (!event.has_epoch() || !event.epoch().has_best()) return;
  const std::string id = JobId(event.job());
  MutexLock lock(&mutex_);
  if (pruned_.contains(id)) return;
  v1::EpochSummary& epoch = news_[id].epoch;
  epoch.set_epoch(event.epoch().epoch());
  epoch.set_epochs(event.epoch().epochs());
  *epoch.mutable_best() = event.epoch().best();
}

void SweepPruner::OnMoved(const v1::Job& job) {
  if (!IsTerminal(job.state())) return;
  const std::string id = JobId(job.name());
  MutexLock lock(&mutex_);
  pruned_.erase(id);
  News& news = news_[id];
  news.ended = job.state();
  news.sweep_id = SweepId(job.sweep());
}

void SweepPruner::OnDeleted(const v1::Job& job) {
  MutexLock lock(&mutex_);
  News& news = news_[JobId(job.name())];
  news.is_deleted = true;
  news.sweep_id = SweepId(job.sweep());
}

void SweepPruner::Run() {
  for (;;) {
    std::map<std::string, News> news;
    {
      MutexLock lock(&mutex_);
      const auto has_work = [this]()
                                ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !news_.empty(); };
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) return;
      news = std::exchange(news_, {});
    }
    // Ends first: a job that succeeded before another job's epoch counts for this epoch.
    for (const bool ends : {true, false}) {
      for (const auto& [job_id, one] : news) {
        if (one.IsEnd() != ends) continue;
        if (IsStopping()) return;
        ends ? TakeEnd(job_id, one) : TakeEpoch(job_id, one);
      }
    }
  }
}

bool SweepPruner::IsStopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void SweepPruner::TakeEpoch(const std::string& job_id, const News& news) {
  const MedianRule* const rule = RuleOf(job_id);
  if (rule == nullptr) return;
  const std::optional<std::string> why = rule->WhyStop(news.epoch);
  if (!why.has_value()) return;
  spdlog::info("pruning job={} epoch={}", job_id, news.epoch.epoch());
  Prune(job_id, *why);
}

void SweepPruner::TakeEnd(const std::string& job_id, const News& news) {
  sweep_of_.erase(job_id);
  const auto rule = rules_.find(news.sweep_id);
  if (rule == rules_.end() || rule->second == nullptr) return;
  if (news.is_deleted) return rule->second->Remove(job_id);
  if (news.ended != v1::JOB_STATE_SUCCEEDED) return;
  AddCurve(job_id, rule->second.get()).IgnoreError();
}

absl::Status SweepPruner::AddCurve(const std::string& job_id, MedianRule* rule) {
  absl::StatusOr<BestCurve> curve = LoadCurve(job_id);
  if (curve.ok()) {
    rule->Add(job_id, *std::move(curve));
  } else if (absl::IsCancelled(curve.status())) {
    return curve.status();
  } else {
    // The log may stay unreadable. Reading it again after each epoch would read all other curves again, too.
    spdlog::warn("a job does not count for the pruning of its sweep job={}: {}", job_id,
                 curve.status().ToString());
  }
  return absl::OkStatus();
}

void SweepPruner::Prune(const std::string& job_id, const std::string& why) {
  {
    MutexLock lock(&mutex_);
    pruned_.insert(job_id);
  }
  jobs_->Prune(job_id, why, [this, job_id](const absl::StatusOr<v1::Job>& pruned) {
    if (pruned.ok()) return;
    // The job may have ended or been paused meanwhile. If it continues, its next epoch is judged.
    spdlog::info("not pruned job={}: {}", job_id, pruned.status().ToString());
    MutexLock lock(&mutex_);
    pruned_.erase(job_id);
  });
}

MedianRule* SweepPruner::RuleOf(const std::string& job_id) {
  auto sweep = sweep_of_.find(job_id);
  if (sweep == sweep_of_.end()) {
    const absl::StatusOr<v1::Job> job = jobs_->Get(job_id);
    // It was deleted, or the next epoch finds it.
    if (!job.ok()) return nullptr;
    sweep = sweep_of_.emplace(job_id, SweepId(job->sweep())).first;
  }
  if (sweep->second.empty()) return nullptr;
  auto rule = rules_.find(sweep->second);
  if (rule == rules_.end()) {
    absl::StatusOr<std::unique_ptr<MedianRule>> loaded = LoadRule(sweep->second);
    if (absl::IsCancelled(loaded.status())) return nullptr;
    if (!loaded.ok()) {
      spdlog::warn("cannot judge the jobs of a sweep, trying again after the next epoch sweep={}: {}",
                   sweep->second, loaded.status().ToString());
      return nullptr;
    }
    ForgetRules();
    rule = rules_.emplace(sweep->second, *std::move(loaded)).first;
  }
  return rule->second.get();
}

absl::StatusOr<std::unique_ptr<MedianRule>> SweepPruner::LoadRule(const std::string& sweep_id) {
  TANDEM_ASSIGN_OR_RETURN(const StoredSweep stored, jobs_->GetSweep(sweep_id));
  if (!stored.sweep.has_pruning()) return nullptr;
  auto rule = std::make_unique<MedianRule>(stored.sweep);
  for (const StoredJob& row : stored.jobs) {
    if (row.job.state() != v1::JOB_STATE_SUCCEEDED) continue;
    const std::string id = JobId(row.job.name());
    TANDEM_RETURN_IF_ERROR(AddCurve(id, rule.get()));
  }
  return rule;
}

absl::StatusOr<BestCurve> SweepPruner::LoadCurve(const std::string& job_id) {
  BestCurve curve;
  bool is_stopping = false;
  const auto add = [this, &curve, &is_stopping](const v1::JobEvent& event) {
    curve.Add(event);
    is_stopping = IsStopping();
    return !is_stopping;
  };
  TANDEM_RETURN_IF_ERROR(
      jobs_->VisitEvents(job_id, /*after_sequence=*/0, std::numeric_limits<int>::max(), add).status());
  if (is_stopping) return absl::CancelledError("cannot read the job's log: the daemon is shutting down");
  return curve;
}

void SweepPruner::ForgetRules() {
  if (rules_.size() < kMostRules) return;
  std::set<std::string> training;
  for (const auto& [job_id, sweep_id] : sweep_of_) training.insert(sweep_id);
  std::erase_if(rules_, [&training](const auto& rule) { return !training.contains(rule.first); });
}

}  // namespace tandem
