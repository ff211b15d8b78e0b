#ifndef TANDEM_SERVER_AUTH_AUDIT_LOG_H_
#define TANDEM_SERVER_AUTH_AUDIT_LOG_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "server/auth/audit_record.h"
#include "server/auth/refusal_budget.h"

namespace tandem {

// Who did what: lines of JSON, only ever appended, in audit.log (AUDIT.md). Where that has grown too large it
// becomes audit.log.1, and so on up to a number that is kept. Thread-safe.
//
// A thread of its own writes: callers never wait for the disk. What cannot be written, as on a full disk,
// waits, is tried again every second, and is loud; only where too many wait are new ones lost, of which a
// line tells later.
class AuditLog {
 public:
  struct Options {
    // Where audit.log is; it exists. Required.
    std::string folder = {};
    // Of one file, about.
    int64_t most_bytes = int64_t{16} << 20;
    // Files besides audit.log.
    int kept = 8;
    // Records that wait to be written.
    int most_waiting = 10000;
    // Of each user's refused calls: so many at once, then so many a second.
    double refused_at_once = 100;
    double refused_a_second = 2;
    absl::Duration retry_interval = absl::Seconds(1);
  };

  // How it stands.
  struct State {
    int64_t written = 0;
    int64_t lost = 0;
    int64_t waiting = 0;
    // The last attempt to write failed.
    bool failing = false;
  };

  // Continues the file that is there. An error of the system: it cannot be read or written for another reason
  // than a full disk. `env` and `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const Options& options, Env* env, const Clock* clock);
  // Close().
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Add(AuditRecord record);
  // The same, within the budget of `record.user`. Whether it is written.
  bool AddRefused(AuditRecord record);

  // Writes what waits, trying once, and takes no more. Idempotent.
  void Close();

  State state() const;

 private:
  AuditLog(const Options& options, Env* env, const Clock* clock);

  void Push(AuditRecord record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PushLeftOut(const std::string& user, int64_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); }
  void Run();
  // Writes from the front, and removes what is written, until something fails.
  absl::Status WriteAll(std::deque<AuditRecord>* records);

  // The rest is for one thread at a time: Open's, then that of Run.
  absl::Status OpenFile();
  absl::Status Rotate();
  absl::Status Append(const std::string& line);
  std::string Path(int number) const;

  const Options options_;
  Env* const env_;
  const Clock* const clock_;
  std::unique_ptr<WritableFile> file_;
  int64_t size_ = 0;
  // The file may end within a line.
  bool torn_ = false;

  mutable Mutex mutex_;
  std::deque<AuditRecord> waiting_ ABSL_GUARDED_BY(mutex_);
  RefusalBudget budget_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_);
  // Lost, and not told yet.
  int64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUDIT_LOG_H_
