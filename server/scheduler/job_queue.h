#ifndef TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_
#define TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduler/gang_request.h"

namespace tandem {

// A waiting job, reduced to the fields for placing.
struct WaitingJob {
  std::string id;
  std::string user;
  int priority = 0;
  // Orders a user's jobs of the same priority.
  absl::Time create_time;
  // The time when it became QUEUED or got its priority, by Clock::Elapsed() since the Unix epoch.
  absl::Time waits_since;
  GangRequest gang;
  // The share of each device. Below 1, the job shares its devices.
  double share = 1;
  // The estimated time with its devices; infinite if unknown. No start depends on it.
  absl::Duration expected_run_time = absl::InfiniteDuration();
  // The longest time with its devices, by its time limit; infinite without a limit.
  absl::Duration longest_run_time = absl::InfiniteDuration();
  // Its sweep, "sweeps/<id>", and the most jobs of the sweep that may hold devices at a time. 0: no limit.
  std::string sweep;
  int sweep_max_running = 0;
  // True if the process of its last attempt still holds devices.
  bool is_held_up = false;
  // True if it runs on a cluster and so needs no devices of this machine.
  bool is_on_cluster = false;
  // True if it lost its worker and must not start before `restart_time`. This is restart number `restarts` of
  // at most `max_restarts`.
  bool is_delayed = false;
  absl::Time restart_time = absl::InfinitePast();
  int restarts = 0;
  int max_restarts = 0;
};

// The waiting jobs, in groups: a user's jobs of one priority, sorted by age. Not thread-safe.
//
// A group rises a level for each `ageing_interval` in which a job of it could run. The level raises only one
// job of the group: the job that could run and has waited longest. It rises by no more than its own wait. Its
// start lowers the group by one level. So a group that others overtake starts at least one job per interval
// in the end. A long queue gains nothing over a short queue. A group that starts a job in each interval never
// rises.
//
// All times but `create_time` are by Clock::Elapsed() since the Unix epoch, so that setting the clock changes
// no wait.
class JobQueue {
 public:
  explicit JobQueue(absl::Duration ageing_interval = absl::Hours(1)) : ageing_interval_(ageing_interval) {}

  using Key = std::pair<absl::Time, int64_t>;
  // Oldest first. Jobs of the same time are in the order of Add.
  using Jobs = std::map<Key, WaitingJob>;
  struct Group {
    Jobs jobs;
    // The jobs, sorted by wait, longest first.
    std::set<std::pair<absl::Time, Key>> by_wait;
    // The start of the group's wait; InfiniteFuture if none of its jobs could run at the last decision.
    absl::Time waits_since = absl::InfiniteFuture();
  };
  // A user and a priority.
  using GroupKey = std::pair<std::string, int>;
  // Only groups with jobs.
  using Groups = std::map<GroupKey, Group>;

  // Adds a job. Returns false, without changes, if a job has the same id.
  bool Add(WaitingJob job);
  // Returns the job with this id; null if none. Through the pointer, callers may change only is_held_up,
  // is_delayed and the run times.
  WaitingJob* Find(const std::string& id);
  const WaitingJob* Find(const std::string& id) const;
  // Returns the place of the job with this id among its group's jobs; nullopt if no job has the id.
  std::optional<Key> KeyOf(const std::string& id) const;
  // Returns false if no job has this id.
  bool Remove(const std::string& id);
  // Removes a job that starts. `was_longest`: it had waited longest of its group's jobs that could run, so
  // the group loses a level.
  bool Start(const std::string& id, absl::Time now, bool was_longest);

  // Call after each decision. `waiting` has each group with a job that could run but did not start, and the
  // time since when the longest-waiting such job waits. The waits of these groups continue or begin now. All
  // other groups' waits end.
  void NoteWaiting(const std::map<GroupKey, absl::Time>& waiting, absl::Time now);
  // Sets the start of a group's wait from before this queue existed. Does nothing if the group has no jobs.
  void RestoreWait(const GroupKey& group, absl::Time since);

  // Returns the levels by which the group's wait raises its longest-waiting job that could run.
  int RaisedBy(const Group& group, absl::Time now) const;
  // Returns the time of the next rise of any group; InfiniteFuture if no group waits.
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
