#include "server/sweeps/sweep_pruner.h"

#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "server/store/records.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// Rules that are kept in memory. More sweeps than these rarely train at the same time.
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
  MutexLock lock(&mutex_);
  v1::EpochSummary& epoch = news_[JobId(event.job())].epoch;
  epoch.set_epoch(event.epoch().epoch());
  epoch.set_epochs(event.epoch().epochs());
  *epoch.mutable_best() = event.epoch().best();
}

void SweepPruner::OnMoved(const v1::Job& job) {
  if (!IsTerminal(job.state())) return;
  MutexLock lock(&mutex_);
  news_[JobId(job.name())].ended = job.state();
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
    for (const auto& [job_id, one] : news) Take(job_id, one);
  }
}

void SweepPruner::Take(const std::string& job_id, const News& news) {
  if (news.ended != v1::JOB_STATE_UNSPECIFIED) {
    const auto sweep = sweep_of_.extract(job_id);
    const auto rule = sweep.empty() ? rules_.end() : rules_.find(sweep.mapped());
    if (news.ended != v1::JOB_STATE_SUCCEEDED || rule == rules_.end() || rule->second == nullptr) return;
    absl::StatusOr<BestCurve> curve = LoadCurve(job_id);
    if (curve.ok()) {
      rule->second->Add(job_id, *std::move(curve));
    } else {
      // The next look reads all curves of the sweep again.
      rules_.erase(rule);
    }
    return;
  }
  const MedianRule* const rule = RuleOf(job_id);
  if (rule == nullptr) return;
  const std::optional<std::string> why = rule->WhyStop(news.epoch);
  if (!why.has_value()) return;
  spdlog::info("pruning job={} epoch={}", job_id, news.epoch.epoch());
  jobs_->Prune(job_id, *why, [job_id](const absl::StatusOr<v1::Job>& pruned) {
    // The job may have ended or been paused meanwhile.
    if (!pruned.ok()) spdlog::info("not pruned job={}: {}", job_id, pruned.status().ToString());
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
    if (!loaded.ok()) {
      spdlog::warn("cannot judge the jobs of a sweep, trying again after the next epoch sweep={}: {}",
                   sweep->second, loaded.status().ToString());
      return nullptr;
    }
    if (rules_.size() >= kMostRules) rules_.clear();
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
    TANDEM_ASSIGN_OR_RETURN(BestCurve curve, LoadCurve(id));
    rule->Add(id, std::move(curve));
  }
  return rule;
}

absl::StatusOr<BestCurve> SweepPruner::LoadCurve(const std::string& job_id) {
  BestCurve curve;
  TANDEM_RETURN_IF_ERROR(jobs_
                             ->VisitEvents(job_id, /*after_sequence=*/0, std::numeric_limits<int>::max(),
                                           [&curve](const v1::JobEvent& event) {
                                             curve.Add(event);
                                             return true;
                                           })
                             .status());
  return curve;
}

}  // namespace tandem
