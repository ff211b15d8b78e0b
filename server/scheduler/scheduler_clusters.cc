#include <algorithm>

#include "server/scheduler/scheduler.h"

// The part of Scheduler about jobs on a cluster.

namespace tandem {

void Scheduler::PlaceOnClusters(Orders* orders) {
  for (auto id = cluster_jobs_.begin(); id != cluster_jobs_.end();) {
    const WaitingJob* const waiting = queue_.Find(*id);
    if (waiting == nullptr) {
      id = cluster_jobs_.erase(id);
      continue;
    }
    const auto is_of_sweep = [waiting](const auto& holder) {
      return holder.second.job.sweep() == waiting->sweep;
    };
    const bool sweep_is_full =
        waiting->sweep_max_running > 0 &&
        std::count_if(holders_.begin(), holders_.end(), is_of_sweep) >= waiting->sweep_max_running;
    if (waiting->is_held_up || waiting->is_delayed || sweep_is_full) {
      ++id;
      continue;
    }
    Hold(*waiting, /*lease=*/{}, /*devices_of_ranks=*/{}, clock_->Now(), orders);
    queue_.Remove(*id);
    id = cluster_jobs_.erase(id);
  }
}

}  // namespace tandem
