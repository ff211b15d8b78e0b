#ifndef TANDEM_SERVER_SWEEPS_MEDIAN_RULE_H_
#define TANDEM_SERVER_SWEEPS_MEDIAN_RULE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/v1/event.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// The best value of an objective after each epoch that measured it. The last value counts for later epochs.
class BestCurve {
 public:
  // Adds the value of an event. An attempt that repeats an epoch replaces the earlier attempt's values from
  // this epoch on.
  void Add(const v1::JobEvent& event);
  // Returns the best value after `epoch` epochs; nullopt if nothing was measured until then.
  std::optional<double> After(int64_t epoch) const;
  // Returns true if the values are from validation.
  bool validation() const { return validation_; }
  // Returns the number of values in memory.
  size_t size() const { return best_.size(); }

 private:
  // Epochs that changed the best value, from 1, in order. Jobs may have millions of epochs.
  std::vector<std::pair<int64_t, double>> best_;
  bool validation_ = false;
};

// Decides which jobs of a sweep are stopped. See SweepPruning.
class MedianRule {
 public:
  // `sweep` has its objective's direction.
  explicit MedianRule(const v1::Sweep& sweep);

  // Adds the curve of a SUCCEEDED job, or replaces it.
  void Add(const std::string& job_id, BestCurve curve);
  // Removes a deleted job's curve, if there is one.
  void Remove(const std::string& job_id) { succeeded_.erase(job_id); }

  // Returns why a job with this epoch is stopped, as a sentence; nullopt if it trains on. Measurements from
  // validation and from training are not compared.
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
