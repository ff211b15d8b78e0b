#ifndef TANDEM_SERVER_AUTH_AUDIT_RECORD_H_
#define TANDEM_SERVER_AUTH_AUDIT_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// A line of the audit log (AUDIT.md). The line leaves out empty strings and zeros.
struct AuditRecord {
  // "start", "stop", "call", "expired", "lost" or "left_out".
  std::string event;
  // AuditLog sets the time if it is InfinitePast.
  absl::Time time = absl::InfinitePast();
  std::string user;
  // "ipv4:10.0.0.7:51234".
  std::string peer;
  // For example "CreateJob". If the call was refused before it reached a service, the call's path.
  std::string method;
  // For example "jobs/<id>" or "tokens/<user>". Text from a client is escaped.
  std::string resource;
  // "OK", "PERMISSION_DENIED".
  std::string code;
  // The reason of an error, such as "NOT_YOUR_JOB".
  std::string reason;
  // The call's id. The daemon's log and the client know the same id.
  std::string call;
  // The daemon's version and address, in "start" records.
  std::string version;
  std::string address;
  // The number of records that are lost or left out.
  int64_t count = 0;

  // Returns one line of JSON, with a line end. Replaces bytes that are no UTF-8.
  std::string ToLine() const;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUDIT_RECORD_H_
