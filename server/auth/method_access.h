#ifndef TANDEM_SERVER_AUTH_METHOD_ACCESS_H_
#define TANDEM_SERVER_AUTH_METHOD_ACCESS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/auth/caller.h"

namespace tandem {

// The role that a method of the public services requires.
struct MethodAccess {
  // "tandem.v1.JobService".
  absl::string_view service;
  // For example "CreateJob". Method names are unique over all services.
  absl::string_view method;
  // The least role that may call the method. The handler also checks who owns the job or data set.
  v1::TokenRole least_role;
  // True if the method changes something, so that the audit log records each call.
  bool changes;
};

// Lists every method of every public service.
absl::Span<const MethodAccess> MethodAccessTable();

// Returns null if no such method exists.
const MethodAccess* FindMethodAccess(absl::string_view method);

// PERMISSION_DENIED (ADMIN_ONLY, ROLE_TOO_LOW) if the caller's role may not call `method` ("CreateJob"). Only
// administrators may call a method without an entry.
absl::Status CheckRole(const Caller& caller, absl::string_view method);

// Returns "viewer", "submitter" or "admin".
absl::string_view RoleName(v1::TokenRole role);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_METHOD_ACCESS_H_
