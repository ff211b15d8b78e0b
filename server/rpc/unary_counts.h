#ifndef TANDEM_SERVER_RPC_UNARY_COUNTS_H_
#define TANDEM_SERVER_RPC_UNARY_COUNTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Counts the open unary calls of each user and connection, and the bytes of answers that clients have not
// read. Thread-safe.
class UnaryCounts {
 public:
  struct Limits {
    // The most calls of a user; 0: no limit.
    int of_user = 1024;
    // The most calls of a connection.
    int of_connection = 1024;
    // The most bytes of a user's unread answers. A single answer is always allowed.
    int64_t answer_bytes = 64 << 20;
    // A client that has not read an answer for this long is cut off.
    absl::Duration reading_time = absl::Seconds(30);
  };

  explicit UnaryCounts(const Limits& limits) : limits_(limits) {}
  UnaryCounts(const UnaryCounts&) = delete;
  UnaryCounts& operator=(const UnaryCounts&) = delete;

  const Limits& limits() const { return limits_; }

  // Counts a call until destroyed. Must not outlive the counts.
  class Place {
   public:
    ~Place() { counts_->End(*this); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // RESOURCE_EXHAUSTED with a retry delay: the user has too many bytes of unread answers.
    absl::Status CheckRoom() { return counts_->CheckRoom(*this); }
    // Counts the call's answer as unread. Call at most once. If the call `is_repeatable` without harm,
    // returns RESOURCE_EXHAUSTED as CheckRoom if the answer would exceed the user's limit. Otherwise never
    // fails.
    absl::Status HoldAnswer(int64_t bytes, bool is_repeatable) {
      return counts_->HoldAnswer(*this, bytes, is_repeatable);
    }

   private:
    friend class UnaryCounts;
    Place(UnaryCounts* counts, std::string user, std::string connection)
        : counts_(counts), user_(std::move(user)), connection_(std::move(connection)) {}

    UnaryCounts* const counts_;
    const std::string user_;
    const std::string connection_;
    int64_t answer_bytes_ = 0;
  };

  // Begins a call. `connection` is a peer in gRPC's form. With `is_admin`, the user's calls have no limit.
  // RESOURCE_EXHAUSTED with a retry delay: the user or the connection has too many open calls, or the user
  // has too many bytes of unread answers.
  absl::StatusOr<std::unique_ptr<Place>> Begin(absl::string_view user, bool is_admin,
                                               absl::string_view connection);

 private:
  struct User {
    int calls = 0;
    int64_t answer_bytes = 0;
  };

  absl::Status CheckRoom(const Place& place);
  absl::Status HoldAnswer(Place& place, int64_t bytes, bool is_repeatable);
  void End(const Place& place);

  const Limits limits_;
  Mutex mutex_;
  // Only users with calls.
  absl::flat_hash_map<std::string, User> users_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_UNARY_COUNTS_H_
