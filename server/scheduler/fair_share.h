#ifndef TANDEM_SERVER_SCHEDULER_FAIR_SHARE_H_
#define TANDEM_SERVER_SCHEDULER_FAIR_SHARE_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// The device-seconds that users have used. Each counts half after every `half_life`. Not thread-safe.
class FairShare {
 public:
  // A user's record: the decayed sum at a time.
  struct Usage {
    double device_seconds = 0;
    absl::Time as_of;
  };

  explicit FairShare(absl::Duration half_life) : half_life_(half_life) {}

  // Restores a user's record from an earlier daemon.
  void Restore(const std::string& user, const Usage& usage) { usages_[user] = usage; }
  // Charges `device_seconds`. Returns the record to store.
  Usage Charge(const std::string& user, double device_seconds, absl::Time now);
  // Returns the sum at `now`; 0 for a user without a record.
  double DeviceSeconds(const std::string& user, absl::Time now) const;
  const std::map<std::string, Usage>& usages() const { return usages_; }

 private:
  double Decayed(const Usage& usage, absl::Time now) const;

  const absl::Duration half_life_;
  std::map<std::string, Usage> usages_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_FAIR_SHARE_H_
