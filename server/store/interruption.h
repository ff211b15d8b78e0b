#ifndef TANDEM_SERVER_STORE_INTERRUPTION_H_
#define TANDEM_SERVER_STORE_INTERRUPTION_H_

#include <atomic>
#include <vector>

#include "engine/base/mutex.h"

struct sqlite3;

namespace tandem {

// Ends what runs in databases, soon, and what is begun in them later. Thread-safe.
class Interruption {
 public:
  // Once: it cannot be taken back.
  void Request();
  bool requested() const { return requested_; }
  // What becomes true then.
  const std::atomic<bool>* flag() const { return &requested_; }

  // While it lives, what runs in the database fails with SQLITE_INTERRUPT once that was requested. Both
  // outlive it.
  class Scope {
   public:
    Scope(Interruption* interruption, sqlite3* database);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interruption* const interruption_;
    sqlite3* const database_;
  };

 private:
  std::atomic<bool> requested_ = false;
  Mutex mutex_;
  std::vector<sqlite3*> databases_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_INTERRUPTION_H_
