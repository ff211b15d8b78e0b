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

// With what the keys of facts of sets known by name begin: the database keeps so many of these, and as many
// others.
inline constexpr absl::string_view kNamedDataFacts = "named/";

// Where facts outlive the daemon: the database. Both functions are thread-safe.
struct DurableFacts {
  // Returns what was put with this key, if it is still kept.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Keeps `facts`, soon and if it can be done.
  std::function<void(const std::string& key, std::string facts)> put;
};

// What is known of data sets' files, by a digest of the files and of what was asked. What is wrong
// with files is remembered until a restart. Where there is no room, the oldest are forgotten. Thread-safe.
class KnownFacts {
 public:
  // Of what something is known; each kind has room of its own, so that nothing is forgotten for the other's.
  enum class Kind {
    // A set that is known by name, and nothing that a request may vary.
    kNamed,
    // Any other.
    kOther,
  };
  using Facts = absl::StatusOr<internal::v1::DataFacts>;

  // Without functions in `durable` nothing outlives this.
  explicit KnownFacts(DurableFacts durable) : durable_(std::move(durable)) {}

  // Returns the facts of a digest, if they are known for either kind. From now on they are known for `kind`,
  // if it is kNamed. May read the database.
  std::optional<Facts> Find(const std::string& digest, Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);

  // Remembers facts, or an INVALID_ARGUMENT. Other errors may be gone the next time, and are left alone.
  void Add(const std::string& digest, const Facts& facts, Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The most memory of what is remembered of each kind.
  static constexpr size_t kMostBytes = 16 << 20;

  struct Known {
    // DataFacts, serialized.
    std::string facts;
    // OK, or why there are no facts.
    absl::Status status;
  };

  // What is remembered of a kind.
  struct Room {
    std::map<std::string, Known> known;
    // The digests of `known`, the oldest first.
    std::deque<std::string> order;
    // Of all entries of `known`.
    size_t bytes = 0;
  };

  static size_t BytesOf(const Known& known);
  static std::string DurableKey(const std::string& digest, Kind kind);
  // What is known for this kind.
  std::optional<Known> Look(const std::string& digest, Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const std::string& digest, Known known, Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers them, also after a restart where nothing is wrong.
  void Keep(const std::string& digest, Known known, Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);

  const DurableFacts durable_;
  Mutex mutex_;
  std::map<Kind, Room> rooms_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_
