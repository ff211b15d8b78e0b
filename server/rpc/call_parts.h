#ifndef TANDEM_SERVER_RPC_CALL_PARTS_H_
#define TANDEM_SERVER_RPC_CALL_PARTS_H_

#include "server/auth/authenticator.h"
#include "server/auth/call_limits.h"
#include "server/rpc/call_hooks.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/open_calls.h"

namespace tandem {

// The objects that every call uses, whatever its method.
struct CallParts {
  const Lifecycle* lifecycle = nullptr;
  const Authenticator* authenticator = nullptr;
  // Null: no limits.
  CallLimits* limits = nullptr;
  CallHooks hooks;
  // Parses large requests.
  FairPool* pool = nullptr;
  OpenCalls* calls = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_PARTS_H_
