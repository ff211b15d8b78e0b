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

// Returns the time until the next automatic backup. `newest` is the newest backup's time; infinite past if
// none. A time in the future comes from a wrong clock and counts as none.
absl::Duration UntilNextBackup(absl::Time newest, absl::Time now, absl::Duration every);

// Makes automatic backups on its own thread, whenever the newest is older than `every`. Backups of earlier
// daemons count. Retries a failed backup after a delay. Thread-safe.
class BackupSchedule {
 public:
  // Called for each automatic backup, on the schedule's thread.
  using Heard = std::function<void(const absl::StatusOr<v1::Backup>& made)>;

  // `every` must be above 0. `backups` and `clock` must outlive this object.
  BackupSchedule(Backups* backups, absl::Duration every, const Clock* clock, Heard heard);
  // Calls Stop.
  ~BackupSchedule();
  BackupSchedule(const BackupSchedule&) = delete;
  BackupSchedule& operator=(const BackupSchedule&) = delete;

  // Blocks until a running backup ends. Idempotent.
  void Stop();

 private:
  void Run();
  // Returns the time until the next backup; zero if due.
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
