#ifndef TANDEM_SERVER_RPC_RESPONSE_SOURCE_H_
#define TANDEM_SERVER_RPC_RESPONSE_SOURCE_H_

#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

namespace tandem {

// Provides a stream's responses. The stream asks for the next response after the previous one was written, so
// a slow client delays only its own source. Next and Cancel may be called from any thread; only one Next may
// be outstanding.
template <typename Response>
class ResponseSource {
 public:
  // A response; nullopt if the stream ends with OK; or the error with which it ends. Next is not called after
  // an end.
  using Result = absl::StatusOr<std::optional<Response>>;
  using Callback = absl::AnyInvocable<void(Result)>;

  virtual ~ResponseSource() = default;

  // Calls `callback` once with the next response, from any thread, perhaps before returning. The callback may
  // destroy the source.
  virtual void Next(Callback callback) = 0;

  // Makes an outstanding and every later callback run soon, with any result. Idempotent.
  virtual void Cancel() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_RESPONSE_SOURCE_H_
