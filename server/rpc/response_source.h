#ifndef TANDEM_SERVER_RPC_RESPONSE_SOURCE_H_
#define TANDEM_SERVER_RPC_RESPONSE_SOURCE_H_

#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

namespace tandem {

// Where a stream's responses come from. The stream pulls: it asks for the next one when the one before was
// written, so a slow client holds up nothing but its own source. Next and Cancel may be called from any
// thread; only one Next is outstanding at a time.
template <typename Response>
class ResponseSource {
 public:
  // A response; nothing: the stream ends with OK; or the error that it ends with. Nothing is asked for after
  // an end.
  using Result = absl::StatusOr<std::optional<Response>>;
  using Callback = absl::AnyInvocable<void(Result)>;

  virtual ~ResponseSource() = default;

  // Calls `callback` once with the next response, from any thread, perhaps before it returns. The callback
  // may destroy the source.
  virtual void Next(Callback callback) = 0;

  // Has an outstanding and every later callback called soon, with any result. Idempotent.
  virtual void Cancel() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_RESPONSE_SOURCE_H_
