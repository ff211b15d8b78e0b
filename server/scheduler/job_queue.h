#ifndef TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_
#define TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduler/gang_request.h"

namespace tandem {

// A waiting job, as far as its placing needs it.
struct WaitingJob {
  std::string id;
  std::string user;
  int priority = 0;
  // Orders a user's jobs of one priority.
  absl::Time create_time;
  // When it became QUEUED, or got its priority.
  absl::Time waits_since;
  GangRequest gang;
  // The part of each device that it takes; below 1 it shares them.
  double share = 1;
  // How long it probably holds its devices; infinite if unknown. A guess: no start depends on it.
  absl::Duration expected_run_time = absl::InfiniteDuration();
  // How long it holds its devices at most, by its time limit; infinite without a limit.
  absl::Duration longest_run_time = absl::InfiniteDuration();
  // "sweeps/<id>" of its sweep, and how many jobs of the sweep may hold devices at a time (0: any number).
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

// The waiting jobs, each user's of a priority (a group) in the order of their age. Not thread-safe.
//
// A group goes up a level of priority for each `ageing_interval` in which one of its jobs could run. The
// level raises one job alone: of those that could run, the job that has waited longest, and by no more than
// it has waited itself. Its start takes one level back. So a group that others go before gets a start an
// interval in the end, a long queue gains nothing over a short one, and a group that starts a job in each
// interval is never raised.
class JobQueue {
 public:
  explicit JobQueue(absl::Duration ageing_interval = absl::Hours(1)) : ageing_interval_(ageing_interval) {}

  using Key = std::pair<absl::Time, int64_t>;
  // Oldest first; those of one moment in the order of Add.
  using Jobs = std::map<Key, WaitingJob>;
  struct Group {
    Jobs jobs;
    // The jobs, those that have waited longest first.
    std::set<std::pair<absl::Time, Key>> by_wait;
    // From when on its wait counts; InfiniteFuture if none of its jobs could run at the last decision.
    absl::Time waits_since = absl::InfiniteFuture();
  };
  // A user and a priority.
  using GroupKey = std::pair<std::string, int>;
  // Those with jobs.
  using Groups = std::map<GroupKey, Group>;

  // False if it holds a job of this id already; then nothing changes.
  bool Add(WaitingJob job);
  // Null if it holds no job of this id. Only is_held_up, is_delayed and the run times may be changed through
  // the pointer.
  WaitingJob* Find(const std::string& id);
  const WaitingJob* Find(const std::string& id) const;
  // False if it holds no job of this id.
  bool Remove(const std::string& id);
  // Remove for a job that starts. `was_longest`: of the jobs of its group that could run, it had waited
  // longest, and takes a level back.
  bool Start(const std::string& id, absl::Time now, bool was_longest);

  // The groups that still had a job that could run after a decision, and since when the longest of them
  // waits: the waits of these groups go on, or begin now. The waits of all others end.
  void NoteWaiting(const std::map<GroupKey, absl::Time>& waiting, absl::Time now);
  // The group's wait began at that time, before this queue was made. No effect if it has no jobs.
  void RestoreWait(const GroupKey& group, absl::Time since);

  // Levels by which its wait raises the group's job that has waited longest of those that could run.
  int RaisedBy(const Group& group, absl::Time now) const;
  // When RaisedBy next grows for a group; InfiniteFuture if no group waits.
  absl::Time NextRaise(absl::Time now) const;

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
