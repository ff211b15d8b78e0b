#ifndef TANDEM_SERVER_RPC_CALL_LOG_H_
#define TANDEM_SERVER_RPC_CALL_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/call_hooks.h"

namespace tandem {

// What the log says about one call. Not thread-safe.
class CallLog {
 public:
  // `method` as "CreateJob". `hooks` hear of it, and outlive it.
  CallLog(absl::string_view method, absl::string_view peer, const CallHooks* hooks);

  // For logs and for the client, who gets it as the metadata "tandem-call-id": 16 hexadecimal digits.
  const std::string& call_id() const { return call_id_; }
  // "jobs/<id>", "tokens/<user>": what the call is about. What a client sent is escaped.
  void SetResource(absl::string_view name);

  // Who calls, where that is known.
  void SetUser(absl::string_view user) { user_ = std::string(user); }

  // Writes the call's one line: method, peer, user, call, resource, code, milliseconds, and for a stream how
  // many responses; as information, or as an error where the daemon is at fault. Of a user's refused calls so
  // many have a line: the next line says how many had none. Once.
  void Finish(const absl::Status& status, int64_t responses = -1) const;

 private:
  const CallHooks* const hooks_;
  const std::string method_;
  const std::string peer_;
  const std::string call_id_;
  const absl::Duration start_;
  std::string user_;
  std::string resource_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_LOG_H_
