#ifndef TANDEM_SERVER_SWEEPS_MEDIAN_RULE_H_
#define TANDEM_SERVER_SWEEPS_MEDIAN_RULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tandem/v1/event.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// The best value of an objective after each epoch that measured it. The last value counts for later epochs.
class BestCurve {
 public:
  // Adds the value of an event. A later attempt may repeat an epoch: its value counts.
  void Add(const v1::JobEvent& event);
  // Returns the best value after `epoch` epochs; nullopt if nothing was measured until then.
  std::optional<double> After(int64_t epoch) const;

 private:
  // Keyed by the epoch, from 1.
  std::map<int64_t, double> best_;
};

// Decides which jobs of a sweep are stopped. See SweepPruning.
class MedianRule {
 public:
  // `sweep` has its objective's direction.
  explicit MedianRule(const v1::Sweep& sweep);

  // Adds the curve of a SUCCEEDED job, or replaces it.
  void Add(const std::string& job_id, BestCurve curve);

  // Returns why a job with this epoch is stopped, as a sentence; nullopt if it trains on.
  std::optional<std::string> WhyStop(const v1::EpochSummary& epoch) const;

 private:
  const bool upwards_;
  const size_t min_jobs_;
  const int64_t min_epochs_;
  // Keyed by job id.
  std::map<std::string, BestCurve> succeeded_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_MEDIAN_RULE_H_
