#ifndef TANDEM_SERVER_SCHEDULER_FAIR_SHARE_H_
#define TANDEM_SERVER_SCHEDULER_FAIR_SHARE_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// Device-seconds that users have held, each counting half as much after every `half_life`. Not thread-safe.
class FairShare {
 public:
  // What is kept of a user: the decayed sum as it was at a time.
  struct Usage {
    double device_seconds = 0;
    absl::Time as_of;
  };

  explicit FairShare(absl::Duration half_life) : half_life_(half_life) {}

  // What was kept before; replaces what is known of the user.
  void Restore(const std::string& user, const Usage& usage) { usages_[user] = usage; }
  // Charges `device_seconds`; returns what is to be kept.
  Usage Charge(const std::string& user, double device_seconds, absl::Time now);
  // The sum as of `now`; 0 for one who was never charged.
  double DeviceSeconds(const std::string& user, absl::Time now) const;
  const std::map<std::string, Usage>& usages() const { return usages_; }

 private:
  double Decayed(const Usage& usage, absl::Time now) const;

  const absl::Duration half_life_;
  std::map<std::string, Usage> usages_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_FAIR_SHARE_H_
