#include "server/jobs/lease_times.h"

#include <algorithm>

#include "google/protobuf/util/time_util.h"
#include "server/store/records.h"

namespace tandem {

bool IsHolding(v1::JobState state) { return state != v1::JOB_STATE_QUEUED && !IsAtRest(state); }

void LeaseTimes::Begin(const v1::Job& job) {
  MutexLock lock(&mutex_);
  leases_[job.name()] = {job.lease_time(), clock_->Elapsed()};
}

absl::Duration LeaseTimes::Held(const v1::Job& job, const google::protobuf::Timestamp& time) const {
  using google::protobuf::util::TimeUtil;
  {
    MutexLock lock(&mutex_);
    const auto lease = leases_.find(job.name());
    if (lease != leases_.end() && lease->second.time == job.lease_time()) {
      return clock_->Elapsed() - lease->second.begun;
    }
  }
  const absl::Duration held = absl::Microseconds(TimeUtil::DurationToMicroseconds(time - job.lease_time()));
  return std::max(held, absl::ZeroDuration());
}

void LeaseTimes::Forget(const std::string& job_name) {
  MutexLock lock(&mutex_);
  leases_.erase(job_name);
}

}  // namespace tandem
