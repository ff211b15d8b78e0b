#ifndef TANDEM_SERVER_RPC_CALL_AUDIT_H_
#define TANDEM_SERVER_RPC_CALL_AUDIT_H_

#include "server/auth/audit_log.h"
#include "server/auth/server_credentials.h"
#include "server/rpc/call_hooks.h"

namespace tandem {

// Returns `hooks` plus hooks that write the audit log: every call that changes something, and every refused
// call. Failed calls count against the user's budget in the log. `audit` must outlive the hooks.
CallHooks WithAudit(CallHooks hooks, AuditLog* audit);

// For credentials: records refused calls of strangers. They share one budget, which also bounds their lines
// in the daemon's log.
RefusalObserver AuditRefusals(AuditLog* audit);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_AUDIT_H_
