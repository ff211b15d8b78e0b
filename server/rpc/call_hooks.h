#ifndef TANDEM_SERVER_RPC_CALL_HOOKS_H_
#define TANDEM_SERVER_RPC_CALL_HOOKS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// A call that has ended. All views are valid only during the hook.
struct EndedCall {
  // For example "CreateJob".
  absl::string_view method;
  // For example "ipv4:127.0.0.1:51234".
  absl::string_view peer;
  // The caller; empty if unknown.
  absl::string_view user;
  // The call's resource, "jobs/<id>", escaped; empty if none or unknown.
  absl::string_view resource;
  absl::string_view call_id;
  const absl::Status& status;
  absl::Duration duration;
  // True if the client decided how long the call lasted.
  bool is_stream = false;
};

// Returns true if a call with this code was refused.
inline bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied ||
         code == absl::StatusCode::kResourceExhausted;
}

// Observers of calls. Called on any thread, also concurrently; must not block. May be null.
struct CallHooks {
  // `method` is for example "CreateJob".
  std::function<void(absl::string_view method)> started;
  // Called once for each call that started.
  std::function<void(const EndedCall& call)> ended;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_HOOKS_H_
