#ifndef TANDEM_SERVER_RPC_REQUEST_SINK_H_
#define TANDEM_SERVER_RPC_REQUEST_SINK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/completion.h"

namespace tandem {

// Where a stream's requests go, one after another: the next one is read from the client when the one before
// was taken in, so a client is never faster than what takes in. Methods may be called from any thread, one at
// a time.
template <typename Request, typename Response>
class RequestSink {
 public:
  virtual ~RequestSink() = default;

  // Calls `done` once, from any thread, perhaps before it returns. An error ends the stream.
  virtual void Take(Request request, Completion<absl::Status> done) = 0;

  // The client has sent all, or its connection broke: calls `done` once, in the same way, with the answer.
  virtual void Finish(Completion<absl::StatusOr<Response>> done) = 0;

  // The stream has ended otherwise; nothing comes after this.
  virtual void Abandon() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_REQUEST_SINK_H_
