#ifndef TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_
#define TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "tandem/internal/v1/data_facts.pb.h"

namespace tandem {

// Where facts outlive the daemon: the database. Both functions are thread-safe.
struct DurableFacts {
  // Returns what was put with this digest, if it is still kept.
  std::function<std::optional<std::string>(const std::string& digest)> find;
  // Keeps `facts`, soon and if it can be done.
  std::function<void(const std::string& digest, std::string facts)> put;
};

// What is known of data sets' files, by a digest of the files and of what was asked. What is wrong
// with files is remembered until a restart. Thread-safe.
class KnownFacts {
 public:
  using Facts = absl::StatusOr<internal::v1::DataFacts>;

  // Without functions in `durable` nothing outlives this.
  explicit KnownFacts(DurableFacts durable) : durable_(std::move(durable)) {}

  // Returns the facts of a digest, if they are known. May read the database.
  std::optional<Facts> Find(const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);

  // Remembers facts, or an INVALID_ARGUMENT. Other errors may be gone the next time, and are left alone.
  void Add(const std::string& digest, const Facts& facts) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The most memory of what is remembered.
  static constexpr size_t kMostBytes = 32 << 20;

  struct Known {
    // DataFacts, serialized.
    std::string facts;
    // OK, or why there are no facts.
    absl::Status status;
  };

  static size_t BytesOf(const Known& known);
  void Remember(const std::string& digest, Known known) ABSL_LOCKS_EXCLUDED(mutex_);

  const DurableFacts durable_;
  Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
  // Of all entries of `known_`.
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_KNOWN_FACTS_H_
