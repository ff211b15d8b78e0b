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

// Records who did what: appends lines of JSON to audit.log (AUDIT.md). If audit.log grows too large, it
// becomes audit.log.1, audit.log.1 becomes audit.log.2, and so on up to `kept`. Thread-safe.
//
// The log's own thread writes, so callers never wait for the disk. If a write fails, for example because the
// disk is full, the records wait and the thread logs an error and retries every second. If too many records
// wait, new records are lost, and a later "lost" record gives their number.
class AuditLog {
 public:
  struct Options {
    // The folder of audit.log. Must exist. Required.
    std::string folder = {};
    // The approximate size of one file.
    int64_t most_bytes = int64_t{16} << 20;
    // The number of files besides audit.log.
    int kept = 8;
    // The most records that wait to be written.
    int most_waiting = 10000;
    // The budget of each user's refused calls: `refused_at_once` at once, then `refused_a_second` per second.
    double refused_at_once = 100;
    double refused_a_second = 2;
    absl::Duration retry_interval = absl::Seconds(1);
  };

  // Counts since Open.
  struct State {
    int64_t written = 0;
    int64_t lost = 0;
    int64_t waiting = 0;
    // True if the last write failed.
    bool failing = false;
  };

  // Continues the existing file. `env` and `clock` must outlive the log. Errors are the system's if the file
  // cannot be read or written. A full disk is no error.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const Options& options, Env* env, const Clock* clock);
  // Calls Close.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Add(AuditRecord record);
  // Adds a record within the budget of `record.user`. Returns false if the budget is used up; the call is
  // then only counted.
  bool AddRefused(AuditRecord record);

  // Writes the waiting records, with a single try. Later records are dropped. Idempotent.
  void Close();

  State state() const;

 private:
  AuditLog(const Options& options, Env* env, const Clock* clock);

  void Push(AuditRecord record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PushLeftOut(const std::string& user, int64_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); }
  void Run();
  // Writes records from the front, and removes each written record. Stops at the first error.
  absl::Status WriteAll(std::deque<AuditRecord>* records);

  // Only one thread at a time uses the rest: Open's thread, then the thread of Run.
  absl::Status OpenFile();
  absl::Status Rotate();
  absl::Status Append(const std::string& line);
  std::string Path(int number) const;

  const Options options_;
  Env* const env_;
  const Clock* const clock_;
  std::unique_ptr<WritableFile> file_;
  int64_t size_ = 0;
  // True if the file may end in the middle of a line.
  bool torn_ = false;

  mutable Mutex mutex_;
  std::deque<AuditRecord> waiting_ ABSL_GUARDED_BY(mutex_);
  RefusalBudget budget_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_);
  // Lost records without a "lost" record so far.
  int64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUDIT_LOG_H_
