#include "server/sweeps/median_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/sweeps/expansion.h"

namespace tandem {
namespace {

// Returns the median of at least one value. Of an even number, the mean of the two in the middle.
double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void BestCurve::Add(const v1::JobEvent& event) {
  const v1::EpochSummary& epoch = event.epoch();
  if (!event.has_epoch() || !epoch.has_best() || std::isnan(epoch.best().value())) return;
  while (!best_.empty() && best_.back().first >= epoch.epoch()) best_.pop_back();
  validation_ = epoch.best().validation();
  const double value = epoch.best().value();
  if (best_.empty() || best_.back().second != value) best_.emplace_back(epoch.epoch(), value);
}

std::optional<double> BestCurve::After(int64_t epoch) const {
  const auto later = std::upper_bound(
      best_.begin(), best_.end(), epoch,
      [](int64_t wanted, const std::pair<int64_t, double>& one) { return wanted < one.first; });
  if (later == best_.begin()) return std::nullopt;
  return std::prev(later)->second;
}

MedianRule::MedianRule(const v1::Sweep& sweep)
    : upwards_(sweep.objective().mode() == v1::PLATEAU_MODE_MAX),
      min_jobs_(MinJobsOf(sweep.pruning())),
      min_epochs_(std::max(1, sweep.pruning().min_epochs())) {}

void MedianRule::Add(const std::string& job_id, BestCurve curve) { succeeded_[job_id] = std::move(curve); }

std::optional<std::string> MedianRule::WhyStop(const v1::EpochSummary& epoch) const {
  // A job in its last epoch is about to end.
  if (!epoch.has_best() || epoch.epoch() < min_epochs_ || epoch.epoch() >= epoch.epochs())
    return std::nullopt;
  std::vector<double> others;
  for (const auto& [job_id, curve] : succeeded_) {
    if (curve.validation() != epoch.best().validation()) continue;
    if (const std::optional<double> best = curve.After(epoch.epoch()); best.has_value())
      others.push_back(*best);
  }
  if (others.size() < min_jobs_) return std::nullopt;
  const double median = MedianOf(others);
  const double own = epoch.best().value();
  if (!(upwards_ ? own < median : own > median)) return std::nullopt;
  return absl::StrFormat(
      "Its best %s %s after epoch %d was %.6g, worse than %.6g, the median of %d jobs of its sweep.",
      epoch.best().validation() ? "validation" : "training", epoch.best().metric(), epoch.epoch(), own,
      median, others.size());
}

}  // namespace tandem
