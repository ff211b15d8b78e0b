#include "server/scheduler/run_time_estimate.h"

#include <algorithm>

namespace tandem {
namespace {

// The weight of a new job against all earlier jobs.
constexpr double kWeightOfNew = 0.2;
// Orders of magnitude for an empty history.
constexpr double kCpuOperationsPerSecond = 2e10;
constexpr double kGpuOperationsPerSecond = 5e12;
constexpr double kReferenceOperationsPerSecond = 2e8;

// The seconds that the job has held devices, over all attempts.
double HeldSeconds(const v1::Job& job, absl::Duration held) {
  return job.run_seconds() + absl::ToDoubleSeconds(held);
}

// The steps that the job itself made. A fork starts at the step of another job's checkpoint.
int64_t OwnSteps(const v1::Job& job) { return job.progress().step() - job.forked_from().step(); }

}  // namespace

absl::Duration LongestRemaining(const v1::Job& job, absl::Duration held) {
  if (!job.spec().has_time_limit_seconds()) return absl::InfiniteDuration();
  return absl::Seconds(std::max(0.0, job.spec().time_limit_seconds() - HeldSeconds(job, held)));
}

double RunTimeEstimate::OperationsPerSecond(v1::DeviceKind kind) const {
  const auto learned = learned_.find(kind);
  if (learned != learned_.end()) return learned->second;
  switch (kind) {
    case v1::DEVICE_KIND_GPU:
      return kGpuOperationsPerSecond;
    case v1::DEVICE_KIND_REFERENCE:
      return kReferenceOperationsPerSecond;
    default:
      return kCpuOperationsPerSecond;
  }
}

absl::Duration RunTimeEstimate::Remaining(const v1::Job& job, absl::Duration held) const {
  const absl::Duration longest = LongestRemaining(job, held);
  const double seconds = HeldSeconds(job, held);
  const v1::Progress& progress = job.progress();
  if (OwnSteps(job) > 0 && seconds > 0 && progress.steps() >= progress.step()) {
    return std::min(longest, absl::Seconds(seconds / static_cast<double>(OwnSteps(job)) *
                                           static_cast<double>(progress.steps() - progress.step())));
  }
  if (!(job.planned_operations() > 0)) return longest;
  const double devices = std::max(1, job.spec().replicas().count());
  const double whole =
      job.planned_operations() / (devices * OperationsPerSecond(job.spec().replicas().device_kind()));
  return std::min(longest, std::max(absl::ZeroDuration(), absl::Seconds(whole) - held));
}

void RunTimeEstimate::Learn(const v1::Job& job, absl::Duration held) {
  const double seconds = HeldSeconds(job, held);
  const v1::Progress& progress = job.progress();
  if (!(job.planned_operations() > 0) || !(seconds > 0) || OwnSteps(job) <= 0 || progress.steps() <= 0)
    return;
  const double part = static_cast<double>(OwnSteps(job)) / static_cast<double>(progress.steps());
  const double devices = std::max(1, job.spec().replicas().count());
  const double rate = job.planned_operations() * part / (seconds * devices);
  const auto [learned, is_first] = learned_.try_emplace(job.spec().replicas().device_kind(), rate);
  if (!is_first) learned->second += kWeightOfNew * (rate - learned->second);
}

}  // namespace tandem
