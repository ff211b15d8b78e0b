#ifndef TANDEM_SERVER_RPC_ADAPTED_SOURCE_H_
#define TANDEM_SERVER_RPC_ADAPTED_SOURCE_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "server/events/item_source.h"

namespace tandem::rpc {

// Turns the items of another source into responses. Destroying or cancelling the source cancels the other
// source.
template <typename Response, typename Item>
class AdaptedSource : public ItemSource<Response> {
 public:
  using Callback = typename ItemSource<Response>::Callback;
  // Returns an item's response.
  using Take = std::function<Response(Item&)>;
  // Returns the error that the client gets for an error of the other source.
  using Explain = std::function<absl::Status(const absl::Status&)>;

  AdaptedSource(
      std::shared_ptr<ItemSource<Item>> pulled, Take take,
      Explain explain = [](const absl::Status& status) { return status; })
      : pulled_(std::move(pulled)), take_(std::move(take)), explain_(std::move(explain)) {}
  ~AdaptedSource() override { pulled_->Cancel(); }

  void Next(Callback callback) override {
    // The callback may destroy this object.
    const std::shared_ptr<ItemSource<Item>> pulled = pulled_;
    pulled->Next([take = take_, explain = explain_,
                  callback = std::move(callback)](typename ItemSource<Item>::Result item) mutable {
      if (!item.ok()) {
        callback(explain(item.status()));
      } else if (!item->has_value()) {
        callback(std::nullopt);
      } else {
        callback(take(**item));
      }
    });
  }

  void Cancel() override { pulled_->Cancel(); }

 private:
  const std::shared_ptr<ItemSource<Item>> pulled_;
  const Take take_;
  const Explain explain_;
};

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_ADAPTED_SOURCE_H_
