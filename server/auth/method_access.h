#ifndef TANDEM_SERVER_AUTH_METHOD_ACCESS_H_
#define TANDEM_SERVER_AUTH_METHOD_ACCESS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/auth/caller.h"

namespace tandem {

// What a method of the public services asks of who calls it.
struct MethodAccess {
  // "tandem.v1.JobService".
  absl::string_view service;
  // "CreateJob"; no two services have methods of one name.
  absl::string_view method;
  // Roles from this one up may call it. Whose the job or data set is, the handler asks besides.
  v1::TokenRole least_role;
  // Whether it changes something, so that each call of it belongs in the audit log.
  bool changes;
};

// Every method of every public service. A method that is not here is nobody's.
absl::Span<const MethodAccess> MethodAccessTable();

// Null: there is no such method.
const MethodAccess* FindMethodAccess(absl::string_view method);

// PERMISSION_DENIED (ADMIN_ONLY, ROLE_TOO_LOW) where the caller's role is below what `method` ("CreateJob")
// asks.
absl::Status CheckRole(const Caller& caller, absl::string_view method);

// "viewer", "submitter", "admin".
absl::string_view RoleName(v1::TokenRole role);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_METHOD_ACCESS_H_
