#ifndef TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_
#define TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// The rest of users' quotas and sweeps' limits while jobs are started. Not thread-safe; the snapshot outlives
// it.
class UsageLimits {
 public:
  explicit UsageLimits(const Snapshot& snapshot);

  // Devices that the user may hold; 0: any number. Devices that the user holds.
  int MaxDevices(const std::string& user) const;
  int Held(const std::string& user) const;
  // Jobs of the sweep that hold devices.
  int Running(const std::string& sweep) const;

  // Whether the user's quota has room for the job, and is not kept for another job.
  bool QuotaAllows(const WaitingJob& job) const;
  // Whether the quota would have room if the user held nothing.
  bool QuotaCouldAllow(const WaitingJob& job) const;
  bool SweepAllows(const WaitingJob& job) const;

  // Keeps what is left of the user's quota for the job: the user's jobs behind it start after it. No effect
  // if the quota is kept for another job already.
  void KeepQuota(const WaitingJob& job) { kept_.try_emplace(job.user, job.id); }
  // The job that the user's quota is kept for; empty if there is none.
  std::string QuotaKeptFor(const std::string& user) const;

  // The job starts.
  void Add(const WaitingJob& job);

 private:
  const Snapshot& snapshot_;
  absl::flat_hash_map<std::string, int> held_;
  absl::flat_hash_map<std::string, int> running_;
  // Jobs by user.
  absl::flat_hash_map<std::string, std::string> kept_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_USAGE_LIMITS_H_
