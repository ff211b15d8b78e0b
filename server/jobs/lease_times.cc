#include "server/jobs/lease_times.h"

#include <algorithm>

#include "server/store/timestamps.h"

namespace tandem {
namespace {

// Never negative.
absl::Duration HeldByTheClock(const v1::Job& job, absl::Time now) {
  return std::max(now - TimeOf(job.lease_time()), absl::ZeroDuration());
}

}  // namespace

void LeaseTimes::Begin(const v1::Job& job) {
  const absl::Duration held = HeldByTheClock(job, clock_->Now());
  MutexLock lock(&mutex_);
  leases_[job.name()] = {job.lease_time(), clock_->Elapsed() - held};
}

absl::Duration LeaseTimes::Held(const v1::Job& job, const google::protobuf::Timestamp& time) const {
  {
    MutexLock lock(&mutex_);
    const auto lease = leases_.find(job.name());
    if (lease != leases_.end() && lease->second.time == job.lease_time()) {
      return std::max(clock_->Elapsed() - lease->second.begun, absl::ZeroDuration());
    }
  }
  return HeldByTheClock(job, TimeOf(time));
}

void LeaseTimes::Forget(const v1::Job& job) {
  MutexLock lock(&mutex_);
  const auto lease = leases_.find(job.name());
  if (lease == leases_.end()) return;
  // A requeued job's lease_time was cleared.
  if (!job.has_lease_time() || lease->second.time == job.lease_time()) leases_.erase(lease);
}

void LeaseTimes::Remove(const std::string& job_name) {
  MutexLock lock(&mutex_);
  leases_.erase(job_name);
}

}  // namespace tandem
