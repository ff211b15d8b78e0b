#ifndef TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_
#define TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "tandem/internal/v1/data_facts.pb.h"

namespace tandem {

// Where facts outlive the daemon: the database. Both functions are thread-safe. Keys are digests, or
// "named/<owner>/<digest>" for sets that are known by name: each prefix has room of its own.
struct DurableFacts {
  // Returns what was put with this key, if it is still kept.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Keeps `facts`, soon and if it can be done.
  std::function<void(const std::string& key, std::string facts)> put;
};

// What is known of data sets' files, by a digest of the files and of what was asked. What is wrong
// with files is remembered until a restart. If there is no room, the oldest are forgotten. Thread-safe.
class KnownFacts {
 public:
  // Whose facts are kept. Each owner's named sets have room of their own, and all other facts have another
  // room together: no user's named sets are pushed out for another user.
  struct Place {
    // Who registered the set; "" for sets without an owner, such as those in data folders.
    std::string owner;
    // True: the set is known by name, and a request varied nothing.
    bool is_named = false;
  };
  using Facts = absl::StatusOr<internal::v1::DataFacts>;

  // Without functions in `durable` nothing outlives this.
  explicit KnownFacts(DurableFacts durable) : durable_(std::move(durable)) {}

  // Returns the facts of a digest, if they are known of the owner's named sets or of all others. From now on
  // they are known of the named sets, if `place` is named. May read the database.
  std::optional<Facts> Find(const std::string& digest, const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);

  // Remembers facts, or an INVALID_ARGUMENT. Other errors may be gone the next time, and are left alone.
  void Add(const std::string& digest, const Facts& facts, const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The most memory of a room.
  static constexpr size_t kMostBytes = 4 << 20;

  struct Known {
    // DataFacts, serialized.
    std::string facts;
    // OK, or why there are no facts.
    absl::Status status;
  };

  // What is remembered under one prefix of keys.
  struct Room {
    std::map<std::string, Known> known;
    // The digests of `known`, the oldest first.
    std::deque<std::string> order;
    // Of all entries of `known`.
    size_t bytes = 0;
  };

  static size_t BytesOf(const Known& known);
  // What is known under this prefix of keys.
  std::optional<Known> Look(const std::string& digest, const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const std::string& digest, Known known, const std::string& prefix)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers facts, after a restart too if nothing is wrong.
  void Keep(const std::string& digest, Known known, const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);

  const DurableFacts durable_;
  Mutex mutex_;
  // By prefix.
  std::map<std::string, Room> rooms_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_
