#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_RENDEZVOUS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_RENDEZVOUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// Where the processes of a group learn each other's addresses. Values are small. A key is made of letters,
// digits and dashes. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Lets all know `value` by `key`. Once for a key.
  virtual absl::Status Publish(const std::string& key, const std::string& value) = 0;
  // The value, once it is known. DEADLINE_EXCEEDED where it is not within `timeout`.
  virtual absl::StatusOr<std::string> Await(const std::string& key, absl::Duration timeout) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_RENDEZVOUS_H_
