#ifndef TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_
#define TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// What users' quotas and sweeps' limits leave, while jobs are started. Not thread-safe; the snapshot outlives
// it.
class UsageLimits {
 public:
  explicit UsageLimits(const Snapshot& snapshot);

  // Devices that the user may hold; 0: any number. Devices that the user holds.
  int MaxDevices(const std::string& user) const;
  int Held(const std::string& user) const;
  // Jobs of the sweep that hold devices.
  int Running(const std::string& sweep) const;

  bool QuotaAllows(const WaitingJob& job) const;
  bool SweepAllows(const WaitingJob& job) const;
  // Both.
  bool Allow(const WaitingJob& job) const { return QuotaAllows(job) && SweepAllows(job); }

  // The job starts.
  void Add(const WaitingJob& job);

 private:
  const Snapshot& snapshot_;
  absl::flat_hash_map<std::string, int> held_;
  absl::flat_hash_map<std::string, int> running_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_
