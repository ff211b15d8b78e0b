#ifndef TANDEM_SERVER_RPC_CALL_HOOKS_H_
#define TANDEM_SERVER_RPC_CALL_HOOKS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// A call that has ended. What it points to lives as long as the hook that hears of it.
struct EndedCall {
  // "CreateJob".
  absl::string_view method;
  // "ipv4:127.0.0.1:51234".
  absl::string_view peer;
  // Who called; empty where that is not known.
  absl::string_view user;
  // What it was about, "jobs/<id>", escaped; empty where it is nothing or unknown.
  absl::string_view resource;
  absl::string_view call_id;
  const absl::Status& status;
  absl::Duration duration;
  // It lasted as long as its client wanted.
  bool is_stream = false;
};

// Whether a call that ended so was refused, whatever it wanted.
inline bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied ||
         code == absl::StatusCode::kResourceExhausted;
}

// Who wants to hear of calls. Called on any thread, several at once; must not block. Null: nobody.
struct CallHooks {
  // `method` as "CreateJob".
  std::function<void(absl::string_view method)> started;
  // Once for each call that started.
  std::function<void(const EndedCall& call)> ended;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_HOOKS_H_
