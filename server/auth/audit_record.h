#ifndef TANDEM_SERVER_AUTH_AUDIT_RECORD_H_
#define TANDEM_SERVER_AUTH_AUDIT_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// A line of the audit log (AUDIT.md). What is empty, or 0, is left out of the line.
struct AuditRecord {
  // "start", "stop", "call", "expired", "lost" or "left_out".
  std::string event;
  // Set by AuditLog where it is infinitely far in the past.
  absl::Time time = absl::InfinitePast();
  std::string user;
  // "ipv4:10.0.0.7:51234".
  std::string peer;
  // "CreateJob"; of a call that was refused before it reached a service, its path.
  std::string method;
  // "jobs/<id>", "tokens/<user>"; what a client wrote is escaped.
  std::string resource;
  // "OK", "PERMISSION_DENIED".
  std::string code;
  // Of errors, such as "NOT_YOUR_JOB".
  std::string reason;
  // The call's id, which the daemon's log and the client know too.
  std::string call;
  // Of the daemon's start: its version, and where it listens.
  std::string version;
  std::string address;
  // How many records are lost, or were left out.
  int64_t count = 0;

  // One line of JSON with its end. What is no UTF-8 is replaced.
  std::string ToLine() const;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUDIT_RECORD_H_
