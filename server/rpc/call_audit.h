#ifndef TANDEM_SERVER_RPC_CALL_AUDIT_H_
#define TANDEM_SERVER_RPC_CALL_AUDIT_H_

#include "server/auth/audit_log.h"
#include "server/auth/server_credentials.h"
#include "server/rpc/call_hooks.h"

namespace tandem {

// `hooks`, and besides: every call that changes something, and every call that was refused, whatever it
// wanted, goes into the audit log. Those that failed are within the user's budget there. `audit` outlives the
// hooks.
CallHooks WithAudit(CallHooks hooks, AuditLog* audit);

// For credentials: refused calls of strangers, all within one budget, which bounds their lines in the
// daemon's log, too.
RefusalObserver AuditRefusals(AuditLog* audit);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_AUDIT_H_
