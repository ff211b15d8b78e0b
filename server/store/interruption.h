#ifndef TANDEM_SERVER_STORE_INTERRUPTION_H_
#define TANDEM_SERVER_STORE_INTERRUPTION_H_

#include <atomic>
#include <vector>

#include "engine/base/mutex.h"

struct sqlite3;

namespace tandem {

// Stops running and later statements of several databases soon. Thread-safe.
class Interruption {
 public:
  // Cannot be undone.
  void Request();
  bool requested() const { return requested_; }

  // While alive, makes the database's statements fail with SQLITE_INTERRUPT after the request. Both arguments
  // must outlive it.
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
