#ifndef TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_
#define TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduler/gang_request.h"

namespace tandem {

// A job that waits, as far as its placing goes.
struct WaitingJob {
  std::string id;
  std::string user;
  int priority = 0;
  absl::Time create_time;
  GangRequest gang;
  // The part of each device that it takes; below 1 it shares them.
  double share = 1;
  // How long it is expected to hold its devices; infinite where nobody knows.
  absl::Duration run_time = absl::InfiniteDuration();
  // "sweeps/<id>" of its sweep, and how many of that may hold devices at a time (0: any number).
  std::string sweep;
  int sweep_max_running = 0;
  // The process of its last attempt still holds devices.
  bool is_held_up = false;
  // Its worker was lost, and it is not to start before `restart_time`: for the `restarts`-th time of at most
  // `max_restarts`.
  bool is_delayed = false;
  absl::Time restart_time = absl::InfinitePast();
  int restarts = 0;
  int max_restarts = 0;
};

// The jobs that wait, each user's of a priority in the order of their age. Not thread-safe.
//
// Nothing starves: the first job of such a group goes up a level of priority for each `ageing_interval` that
// the group has waited. A start of the first takes one interval of that back, so that a group that others go
// before gets a start an interval in the end; one that is served as often as that is never raised, however
// many wait in it.
class JobQueue {
 public:
  explicit JobQueue(absl::Duration ageing_interval = absl::Hours(1)) : ageing_interval_(ageing_interval) {}

  // Oldest first; of those of one moment, in the order of Add.
  using Jobs = std::map<std::pair<absl::Time, int64_t>, WaitingJob>;
  // A user's jobs of one priority.
  struct Group {
    Jobs jobs;
    // From when on its wait counts, where its first job is older than that.
    absl::Time waits_since = absl::InfinitePast();
  };
  // By user and priority. Those without jobs are kept for waits_since.
  using Groups = std::map<std::pair<std::string, int>, Group>;

  // False where there is one of this id already; then nothing is changed.
  bool Add(WaitingJob job);
  // Null where there is none of this id. Only is_held_up, is_delayed and run_time may be changed through it.
  WaitingJob* Find(const std::string& id);
  const WaitingJob* Find(const std::string& id) const;
  // False where there is none of this id.
  bool Remove(const std::string& id);
  // Remove for a job that starts now.
  bool Start(const std::string& id, absl::Time now);

  // Levels by which the group's first job is raised above its priority. The group has jobs.
  int RaisedBy(const Group& group, absl::Time now) const;

  const Groups& groups() const { return groups_; }
  size_t size() const { return index_.size(); }
  bool empty() const { return index_.empty(); }

 private:
  struct Place {
    Groups::iterator group;
    Jobs::iterator job;
  };

  const absl::Duration ageing_interval_;
  Groups groups_;
  absl::flat_hash_map<std::string, Place> index_;
  int64_t added_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_
