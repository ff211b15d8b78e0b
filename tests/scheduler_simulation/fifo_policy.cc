#include "tests/scheduler_simulation/fifo_policy.h"

#include <algorithm>

namespace tandem {

Decision FifoPolicy::Decide(const Snapshot& snapshot) const {
  std::vector<bool> held(snapshot.devices.size());
  for (const HoldingJob& job : snapshot.holding) {
    for (const int device : job.devices) held[device] = true;
  }
  std::vector<const WaitingJob*> jobs;
  for (const auto& [key, group] : snapshot.queue->groups()) {
    for (const auto& [age, job] : group.jobs) jobs.push_back(&job);
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const WaitingJob* a, const WaitingJob* b) { return a->create_time < b->create_time; });
  Decision decision;
  for (const WaitingJob* job : jobs) {
    Placement placement{job->id, {}};
    for (size_t i = 0; i < held.size() && static_cast<int>(placement.devices.size()) < job->gang.devices;
         ++i) {
      if (!held[i]) placement.devices.push_back(snapshot.devices[i].name);
    }
    if (static_cast<int>(placement.devices.size()) < job->gang.devices) break;
    for (size_t i = 0; i < held.size(); ++i) {
      const auto& names = placement.devices;
      if (std::find(names.begin(), names.end(), snapshot.devices[i].name) != names.end()) held[i] = true;
    }
    decision.placements.push_back(std::move(placement));
  }
  return decision;
}

}  // namespace tandem
