#ifndef TANDEM_SERVER_STORE_BACKUP_SCHEDULE_H_
#define TANDEM_SERVER_STORE_BACKUP_SCHEDULE_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/store/backups.h"

namespace tandem {

// How long until the next automatic backup, where the newest was made at `newest` (infinite past: none was).
// A time in the future is that of a clock that was wrong, and counts as none.
absl::Duration UntilNextBackup(absl::Time newest, absl::Time now, absl::Duration every);

// Has automatic backups made, on a thread of its own: when the newest is older than `every`, whichever daemon
// made it. One that fails is tried again after a while. Thread-safe.
class BackupSchedule {
 public:
  // Told of each, on the schedule's thread.
  using Heard = std::function<void(const absl::StatusOr<v1::Backup>& made)>;

  // `every` above 0. `backups` and `clock` outlive this.
  BackupSchedule(Backups* backups, absl::Duration every, const Clock* clock, Heard heard);
  // Stop().
  ~BackupSchedule();
  BackupSchedule(const BackupSchedule&) = delete;
  BackupSchedule& operator=(const BackupSchedule&) = delete;

  // Waits for one that is being made. Idempotent.
  void Stop();

 private:
  void Run();
  // How long to wait; zero: it is time.
  absl::Duration Wait() const;

  Backups* const backups_;
  const absl::Duration every_;
  const Clock* const clock_;
  const Heard heard_;

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_BACKUP_SCHEDULE_H_
