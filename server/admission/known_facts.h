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

// Keeps facts beyond the daemon's life, in the database. Both functions must be thread-safe. Keys are
// digests, or "named/<owner>/<digest>" for sets known by name. Each prefix has its own room.
struct DurableFacts {
  // Returns the facts of this key, if still kept.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Keeps `facts` soon, on a best-effort basis.
  std::function<void(const std::string& key, std::string facts)> put;
};

// Remembers the facts of data sets' files. The key is a digest of the files and of the task. Faults of files
// are remembered until a restart. If a room is full, its oldest facts are forgotten. Thread-safe.
class KnownFacts {
 public:
  // Selects the room in which facts are kept. Each owner's named sets have their own room, and all other
  // facts share one room. So no user's named sets push out another user's.
  struct Place {
    // The user who registered the set; "" for sets without an owner, such as sets in data folders.
    std::string owner;
    // True if the set is known by name and the request changed nothing in its spec.
    bool is_named = false;
  };
  using Facts = absl::StatusOr<internal::v1::DataFacts>;

  // If the functions in `durable` are null, a restart forgets all facts.
  explicit KnownFacts(DurableFacts durable) : durable_(std::move(durable)) {}

  // Returns the facts of a digest from the owner's room or from the shared room. If `place` is named, also
  // copies facts from the shared room to the owner's room. May read the database.
  std::optional<Facts> Find(const std::string& digest, const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);

  // Remembers facts or an INVALID_ARGUMENT. Ignores other errors, because they may be temporary.
  void Add(const std::string& digest, const Facts& facts, const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The most memory of one room, in bytes.
  static constexpr size_t kMostBytes = 4 << 20;

  struct Known {
    // A serialized DataFacts.
    std::string facts;
    // OK, or the reason why no facts exist.
    absl::Status status;
  };

  // The facts under one prefix of keys.
  struct Room {
    std::map<std::string, Known> known;
    // The digests of `known`, oldest first.
    std::deque<std::string> order;
    // The memory of all entries in `known`.
    size_t bytes = 0;
  };

  static size_t BytesOf(const Known& known);
  // Returns the facts under this prefix of keys.
  std::optional<Known> Look(const std::string& digest, const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const std::string& digest, Known known, const std::string& prefix)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers facts. If the status is OK, the facts also survive a restart.
  void Keep(const std::string& digest, Known known, const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);

  const DurableFacts durable_;
  Mutex mutex_;
  // Keyed by prefix.
  std::map<std::string, Room> rooms_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_
