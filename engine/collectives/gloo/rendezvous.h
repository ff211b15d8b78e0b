#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_RENDEZVOUS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_RENDEZVOUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// A place where the processes of a group exchange their addresses. Values are small. A key consists of
// letters, digits and dashes. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Publishes `value` under `key`. Call it a single time for each key.
  virtual absl::Status Publish(const std::string& key, const std::string& value) = 0;
  // Waits for the value of `key`. DEADLINE_EXCEEDED if it is not published within `timeout`.
  virtual absl::StatusOr<std::string> Await(const std::string& key, absl::Duration timeout) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_RENDEZVOUS_H_
