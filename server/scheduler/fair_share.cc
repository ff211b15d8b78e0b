#include "server/scheduler/fair_share.h"

#include <algorithm>
#include <cmath>

namespace tandem {

double FairShare::Decayed(const Usage& usage, absl::Time now) const {
  // The clock may have been set back.
  const absl::Duration age = std::max(absl::ZeroDuration(), now - usage.as_of);
  return usage.device_seconds * std::exp2(-absl::FDivDuration(age, half_life_));
}

FairShare::Usage FairShare::Charge(const std::string& user, double device_seconds, absl::Time now) {
  Usage& usage = usages_.try_emplace(user, Usage{0, now}).first->second;
  usage = {Decayed(usage, now) + device_seconds, now};
  return usage;
}

double FairShare::DeviceSeconds(const std::string& user, absl::Time now) const {
  const auto usage = usages_.find(user);
  return usage == usages_.end() ? 0 : Decayed(usage->second, now);
}

}  // namespace tandem
