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

// The open calls and their callers. A shutdown uses it to end all streams, and a token's end to end the
// token's calls. Thread-safe.
class ActiveStreams {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Ends the stream with this status as soon as possible. Does nothing if the stream has ended.
    virtual void End(const absl::Status& status) = 0;
    // Ends the stream now, even if its client has not read everything. A client that did not receive End's
    // status gets CANCELLED. Does nothing if the stream has ended.
    virtual void Cut() = 0;
    // Returns true if the client has made the daemon wait for too long. `now` must come from a monotonic
    // clock.
    virtual bool IsOverdue(absl::Duration now) = 0;
  };

  // Returns a number for Remove. After EndAll, ends the stream at once.
  int64_t Add(std::weak_ptr<Stream> stream, const Caller& caller);
  void Remove(int64_t number);
  // Ends all present and later streams. The first call decides the status.
  void EndAll(const absl::Status& status);
  // Ends the streams whose caller fails `check`, with its error. Cuts streams that an earlier call ended and
  // whose clients do not read, and overdue streams. Calls `check` once for each other stream.
  void EndWhere(const std::function<absl::Status(const Caller&)>& check);
  // Blocks until no stream is open, at most for `timeout`.
  void AwaitNone(absl::Duration timeout);

 private:
  struct Open {
    std::weak_ptr<Stream> stream;
    Caller caller;
    // True if EndWhere has ended it.
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
