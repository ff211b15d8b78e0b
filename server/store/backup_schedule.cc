#include "server/store/backup_schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem {
namespace {

// A starting daemon is busy.
constexpr absl::Duration kFirst = absl::Minutes(1);
constexpr absl::Duration kRetry = absl::Minutes(10);
// Somebody may set the clock meanwhile.
constexpr absl::Duration kLongestWait = absl::Minutes(10);

}  // namespace

absl::Duration UntilNextBackup(absl::Time newest, absl::Time now, absl::Duration every) {
  if (newest > now) return absl::ZeroDuration();
  return std::max(newest + every - now, absl::ZeroDuration());
}

BackupSchedule::BackupSchedule(Backups* backups, absl::Duration every, const Clock* clock, Heard heard)
    : backups_(backups), every_(every), clock_(clock), heard_(std::move(heard)), thread_([this] { Run(); }) {}

BackupSchedule::~BackupSchedule() { Stop(); }

void BackupSchedule::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Duration BackupSchedule::Wait() const {
  absl::Time newest = absl::InfinitePast();
  const absl::StatusOr<std::vector<v1::Backup>> backups = backups_->List();
  // If the list fails, try a backup, whose error will name the reason.
  if (!backups.ok()) return absl::ZeroDuration();
  const absl::Time now = clock_->Now();
  for (const v1::Backup& backup : *backups) {
    // A backup from the future has a wrong time, so ignore it.
    const absl::Time time = absl::FromUnixSeconds(backup.create_time().seconds());
    if (backup.automatic() && time <= now) newest = std::max(newest, time);
  }
  return UntilNextBackup(newest, now, every_);
}

void BackupSchedule::Run() {
  absl::Duration wait = std::min(kFirst, every_);
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), std::min(wait, kLongestWait))) return;
    }
    wait = Wait();
    if (wait > absl::ZeroDuration()) continue;
    const absl::StatusOr<v1::Backup> made = backups_->Create(/*automatic=*/true);
    heard_(made);
    if (!made.ok()) wait = std::min(kRetry, every_);
  }
}

}  // namespace tandem
