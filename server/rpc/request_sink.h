#ifndef TANDEM_SERVER_RPC_REQUEST_SINK_H_
#define TANDEM_SERVER_RPC_REQUEST_SINK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/completion.h"

namespace tandem {

// Receives a stream's requests one after another. The next request is read only after the previous one was
// accepted, so a client is never faster than its sink. Methods may be called from any thread, one at a time.
template <typename Request, typename Response>
class RequestSink {
 public:
  virtual ~RequestSink() = default;

  // Accepts a request. Calls `done` once, from any thread, perhaps before returning. An error ends the
  // stream.
  virtual void Take(Request request, Completion<absl::Status> done) = 0;

  // The client has sent everything. Calls `done` once with the answer, like Take.
  virtual void Finish(Completion<absl::StatusOr<Response>> done) = 0;

  // The stream ended in another way. No call follows.
  virtual void Abandon() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_REQUEST_SINK_H_
