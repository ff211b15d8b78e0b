#ifndef TANDEM_SERVER_RPC_CALL_LOG_H_
#define TANDEM_SERVER_RPC_CALL_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/call_hooks.h"

namespace tandem {

// The log line of a call. Not thread-safe.
class CallLog {
 public:
  // `method` is for example "CreateJob". `hooks` observe the call and must outlive this object.
  CallLog(absl::string_view method, absl::string_view peer, const CallHooks* hooks);

  // The call's id in logs, 16 hexadecimal digits. The client gets it as the metadata "tandem-call-id".
  const std::string& call_id() const { return call_id_; }
  // Sets the call's resource, "jobs/<id>" or "tokens/<user>". Escapes text from a client.
  void SetResource(absl::string_view name);

  // Sets the caller, if known.
  void SetUser(absl::string_view user) { user_ = std::string(user); }

  // Writes the call's line: method, peer, user, call, resource, code, milliseconds, and for a stream the
  // number of responses. Its level is info, or error if the daemon is at fault. Only some of a user's refused
  // calls have a line; the next line gives the number without one. Call once.
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
