#ifndef TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_
#define TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/scheduler/gang_request.h"

namespace tandem {

// A job that waits, as far as its placing goes.
struct WaitingJob {
  std::string id;
  std::string user;
  int priority = 0;
  // Its place among its user's jobs of its priority.
  absl::Time create_time;
  // When it became QUEUED, or got its priority: its wait counts from then, and never from before create_time.
  absl::Time waits_since = absl::InfinitePast();
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
  // Of JobQueue: for how long its line had been held back when it came.
  absl::Duration held_back_before;
};

// The jobs that wait, each user's of a priority in the order of their age. Not thread-safe.
//
// Nothing starves: of such a group, the job that has waited longest of those that could run goes up a level
// of priority for each `ageing_interval`. Its start takes one interval of the group's wait back, so that a
// group that others go before gets a start an interval in the end; one that is served as often as that is
// never raised, however many wait in it. Time in which a job ran, was paused, or was held back by its user's
// quota or its sweep's limit is no wait.
class JobQueue {
 public:
  explicit JobQueue(absl::Duration ageing_interval = absl::Hours(1)) : ageing_interval_(ageing_interval) {}

  using Key = std::pair<absl::Time, int64_t>;
  // Oldest first; of those of one moment, in the order of Add.
  using Jobs = std::map<Key, WaitingJob>;
  // Jobs of a group that the same limits hold back: those of a sweep, or of none, that need as many devices.
  struct Line {
    // By waits_since.
    std::set<std::pair<absl::Time, Key>> by_wait;
    // From when on it is held back; InfiniteFuture where it is not. For how long it was before that.
    absl::Time held_back_since = absl::InfiniteFuture();
    absl::Duration held_back;
  };
  // By devices and sweep.
  using Lines = std::map<std::pair<int, std::string>, Line>;
  // A user's jobs of one priority.
  struct Group {
    Jobs jobs;
    Lines lines;
    // From when on its wait counts, where its jobs have waited for longer than that.
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
  // Remove for a job that starts now. `was_longest`: of those of its group that could run, it had waited
  // longest.
  bool Start(const std::string& id, absl::Time now, bool was_longest);

  // A job of the group started at that time, before this queue was made: its wait counts from then.
  void NoteStart(const std::string& user, int priority, absl::Time time);
  // Which jobs their user's quota and their sweep's limit allow from now on; those that they do not do not
  // wait. The answer is the same for all jobs of a line.
  void NoteLimits(absl::FunctionRef<bool(const WaitingJob&)> allow, absl::Time now);

  // The job of the group that has waited longest of those that could run and are not held back; the end of
  // its jobs where there is none.
  Jobs::const_iterator LongestWaiting(const Group& group, absl::FunctionRef<bool(const WaitingJob&)> can_run,
                                      absl::Time now) const;
  // Levels by which the job is raised above its priority where it is the longest waiting of its group.
  int RaisedBy(const Group& group, const WaitingJob& job, absl::Time now) const;
  // When RaisedBy will next be more for a job than it is; InfiniteFuture where none waits.
  absl::Time NextRaise(absl::Time now) const;

  const Groups& groups() const { return groups_; }
  size_t size() const { return index_.size(); }
  bool empty() const { return index_.empty(); }

 private:
  struct Place {
    Groups::iterator group;
    Lines::iterator line;
    Jobs::iterator job;
  };

  // From when on the job's wait counts.
  absl::Time WaitsSince(const Group& group, const Line& line, const WaitingJob& job, absl::Time now) const;

  const absl::Duration ageing_interval_;
  Groups groups_;
  absl::flat_hash_map<std::string, Place> index_;
  int64_t added_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_JOB_QUEUE_H_
