#include "server/rpc/admit_call.h"

#include <vector>

#include "engine/base/status_macros.h"
#include "server/auth/method_access.h"

namespace tandem {
namespace {

absl::StatusOr<Caller> CallerOf(const Authenticator& authenticator,
                                const grpc::CallbackServerContext& context) {
  std::vector<Authenticator::Metadata> metadata;
  for (const auto& [name, value] : context.client_metadata()) {
    metadata.emplace_back(absl::string_view(name.data(), name.size()),
                          absl::string_view(value.data(), value.size()));
  }
  return authenticator.Identify(metadata);
}

}  // namespace

absl::StatusOr<Caller> AdmitCall(const CallParts& parts, absl::string_view method,
                                 const grpc::CallbackServerContext& context, CallLog* log) {
  absl::StatusOr<Caller> caller = CallerOf(*parts.authenticator, context);
  if (caller.ok()) log->SetUser(caller->user);
  TANDEM_RETURN_IF_ERROR(parts.lifecycle->CheckServing());
  TANDEM_RETURN_IF_ERROR(caller.status());
  TANDEM_RETURN_IF_ERROR(CheckRole(*caller, method));
  if (parts.limits == nullptr) return caller;
  TANDEM_RETURN_IF_ERROR(parts.limits->Admit(caller->user));
  return caller;
}

absl::StatusOr<Caller> AdmitStream(const CallParts& parts, absl::string_view method,
                                   const grpc::CallbackServerContext& context, CallLog* log,
                                   std::unique_ptr<CallLimits::Stream>* place) {
  TANDEM_ASSIGN_OR_RETURN(Caller caller, AdmitCall(parts, method, context, log));
  if (parts.limits == nullptr) return caller;
  TANDEM_ASSIGN_OR_RETURN(*place, parts.limits->Open(caller.user));
  return caller;
}

absl::StatusOr<Caller> AdmitUnary(const CallParts& parts, absl::string_view method,
                                  const grpc::CallbackServerContext& context, CallLog* log,
                                  std::unique_ptr<UnaryCounts::Place>* place) {
  TANDEM_ASSIGN_OR_RETURN(Caller caller, AdmitCall(parts, method, context, log));
  TANDEM_ASSIGN_OR_RETURN(*place, parts.calls->counts.Begin(caller.user, caller.is_admin(), context.peer()));
  return caller;
}

}  // namespace tandem
