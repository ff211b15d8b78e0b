#include "server/rpc/call_audit.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/base/error_reason.h"
#include "server/auth/method_access.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

void Audit(const EndedCall& call, AuditLog* audit) {
  const MethodAccess* const access = FindMethodAccess(call.method);
  const bool changes = access == nullptr || access->changes;
  if (!changes && !IsRefusal(call.status.code())) return;
  AuditRecord record;
  record.event = "call";
  record.user = std::string(call.user);
  record.peer = std::string(call.peer);
  record.method = std::string(call.method);
  record.resource = std::string(call.resource);
  record.code = absl::StatusCodeToString(call.status.code());
  record.reason = GetReason(call.status);
  record.call = std::string(call.call_id);
  if (call.status.ok()) {
    audit->Add(std::move(record));
  } else {
    audit->AddRefused(std::move(record));
  }
}

}  // namespace

CallHooks WithAudit(CallHooks hooks, AuditLog* audit) {
  hooks.ended = [ended = std::move(hooks.ended), audit](const EndedCall& call) {
    if (ended != nullptr) ended(call);
    Audit(call, audit);
  };
  return hooks;
}

RefusalObserver AuditRefusals(AuditLog* audit) {
  return [audit](absl::string_view path, const absl::Status& status) {
    AuditRecord record;
    record.event = "call";
    record.method = absl::Utf8SafeCEscape(path.substr(0, 100));
    record.code = absl::StatusCodeToString(status.code());
    record.reason = GetReason(status);
    const std::string method = record.method;
    if (audit->AddRefused(std::move(record)))
      spdlog::warn("call refused method={} code=UNAUTHENTICATED", method);
  };
}

}  // namespace tandem
