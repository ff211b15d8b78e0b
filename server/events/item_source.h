#ifndef TANDEM_SERVER_EVENTS_ITEM_SOURCE_H_
#define TANDEM_SERVER_EVENTS_ITEM_SOURCE_H_

#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

namespace tandem {

// Provides items, such as a stream's responses. The user asks for the next item after the previous item was
// used, so a slow user delays only its own source. Next and Cancel may be called from any thread; only one
// Next may be outstanding.
template <typename Item>
class ItemSource {
 public:
  // An item; nullopt if the source ends with OK; or the error with which it ends. Next is not called after an
  // end.
  using Result = absl::StatusOr<std::optional<Item>>;
  using Callback = absl::AnyInvocable<void(Result)>;

  virtual ~ItemSource() = default;

  // Calls `callback` once with the next item, from any thread, perhaps before returning. The callback may
  // destroy the source.
  virtual void Next(Callback callback) = 0;

  // Makes an outstanding and every later callback run soon, with any result. Idempotent.
  virtual void Cancel() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_ITEM_SOURCE_H_
