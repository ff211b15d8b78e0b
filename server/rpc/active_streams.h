#ifndef TANDEM_SERVER_RPC_ACTIVE_STREAMS_H_
#define TANDEM_SERVER_RPC_ACTIVE_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/auth/caller.h"

namespace tandem {

// The calls that are open and whose they are, so that a shutdown can end all streams, and the end of a token
// its own calls. Thread-safe.
class ActiveStreams {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Ends the stream with this status as soon as it can; no effect where it has ended.
    virtual void End(const absl::Status& status) = 0;
    // Ends it now, whatever its client has not yet read: it is told CANCELLED where it has not heard of End.
    // No effect where it has ended.
    virtual void Cut() = 0;
    // Whether its client has let the daemon wait for too long by now, of a clock that never jumps.
    virtual bool IsOverdue(absl::Duration now) = 0;
  };

  // Returns a number for Remove. After EndAll the stream is ended at once.
  int64_t Add(std::weak_ptr<Stream> stream, const Caller& caller);
  void Remove(int64_t number);
  // Ends all streams, present and later. The first call decides on the status.
  void EndAll(const absl::Status& status);
  // Ends the streams of those callers for whom `check` gives an error, with that error. Cuts off those that
  // an earlier call has ended and that are still there, because their clients do not read, and those that are
  // overdue. `check` is called once for each of the others.
  void EndWhere(const std::function<absl::Status(const Caller&)>& check);
  // Waits until no stream is open, but no longer than `timeout`.
  void AwaitNone(absl::Duration timeout);

 private:
  struct Open {
    std::weak_ptr<Stream> stream;
    Caller caller;
    // EndWhere has ended it.
    bool is_ending = false;
  };

  bool IsEmpty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return streams_.empty(); }

  Mutex mutex_;
  std::map<int64_t, Open> streams_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_ACTIVE_STREAMS_H_
