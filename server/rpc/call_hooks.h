#ifndef TANDEM_SERVER_RPC_CALL_HOOKS_H_
#define TANDEM_SERVER_RPC_CALL_HOOKS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// Who wants to hear of calls. Called on any thread, several at once; must not block. Null: nobody.
struct CallHooks {
  // `method` as "CreateJob".
  std::function<void(absl::string_view method)> started;
  // Once for each call that started. `is_stream`: it lasted as long as its client wanted.
  std::function<void(absl::string_view method, absl::StatusCode code, absl::Duration duration,
                     bool is_stream)>
      ended;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_HOOKS_H_
