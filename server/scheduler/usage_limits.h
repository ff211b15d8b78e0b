#ifndef TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_
#define TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// The remaining quotas of users and limits of sweeps during a decision. Not thread-safe. The snapshot must
// outlive it.
class UsageLimits {
 public:
  explicit UsageLimits(const Snapshot& snapshot);

  // Return the user's most devices (0: no limit), and the devices that the user holds.
  int MaxDevices(const std::string& user) const;
  int Held(const std::string& user) const;
  // Returns the number of the sweep's jobs that hold devices.
  int Running(const std::string& sweep) const;

  // Returns true if the user's quota has room for the job and is not kept for another job.
  bool QuotaAllows(const WaitingJob& job) const;
  // Returns true if the quota would have room if the user held nothing.
  bool QuotaCouldAllow(const WaitingJob& job) const;
  bool SweepAllows(const WaitingJob& job) const;

  // Keeps the rest of the user's quota for the job, so that the user's later jobs start after it. Does
  // nothing if the quota is already kept for another job.
  void KeepQuota(const WaitingJob& job) { kept_.try_emplace(job.user, job.id); }
  // Returns the id of the job for which the user's quota is kept; empty if none.
  std::string QuotaKeptFor(const std::string& user) const;

  // Counts a job that starts.
  void Add(const WaitingJob& job);

 private:
  const Snapshot& snapshot_;
  absl::flat_hash_map<std::string, int> held_;
  absl::flat_hash_map<std::string, int> running_;
  // The job's id, by user.
  absl::flat_hash_map<std::string, std::string> kept_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_
