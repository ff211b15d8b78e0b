#include <algorithm>

#include "server/scheduler/scheduler.h"

// The part of Scheduler about jobs on a cluster.

namespace tandem {

void Scheduler::PlaceOnClusters(Orders* orders) {
  for (auto next = cluster_jobs_.begin(); next != cluster_jobs_.end();) {
    const auto& [key, id] = *next;
    // The job may have left the queue, and may be in it again at another place.
    if (queue_.KeyOf(id) != key) {
      next = cluster_jobs_.erase(next);
      continue;
    }
    const WaitingJob* const waiting = queue_.Find(id);
    const auto is_of_sweep = [waiting](const auto& holder) {
      return holder.second.job.sweep() == waiting->sweep;
    };
    const bool sweep_is_full =
        waiting->sweep_max_running > 0 &&
        std::count_if(holders_.begin(), holders_.end(), is_of_sweep) >= waiting->sweep_max_running;
    if (waiting->is_held_up || waiting->is_delayed || sweep_is_full) {
      ++next;
      continue;
    }
    Hold(*waiting, /*lease=*/{}, /*devices_of_ranks=*/{}, clock_->Now(), orders);
    queue_.Remove(id);
    next = cluster_jobs_.erase(next);
  }
}

}  // namespace tandem
