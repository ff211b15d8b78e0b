#ifndef TANDEM_SERVER_RPC_ADAPTED_SOURCE_H_
#define TANDEM_SERVER_RPC_ADAPTED_SOURCE_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "server/rpc/response_source.h"

namespace tandem::rpc {

// Turns the items of `Pulled`, a Subscription or a ModelCall, into responses. A null item ends the stream.
// Destroying or cancelling the source cancels `Pulled`.
template <typename Response, typename Pulled>
class AdaptedSource : public ResponseSource<Response> {
 public:
  using Callback = typename ResponseSource<Response>::Callback;
  // Returns an item's response.
  using Take = std::function<Response(decltype(**std::declval<typename Pulled::Result&>()))>;
  // Returns the error that the client gets for an error of `Pulled`.
  using Explain = std::function<absl::Status(const absl::Status&)>;

  AdaptedSource(
      std::shared_ptr<Pulled> pulled, Take take,
      Explain explain = [](const absl::Status& status) { return status; })
      : pulled_(std::move(pulled)), take_(std::move(take)), explain_(std::move(explain)) {}
  ~AdaptedSource() override { pulled_->Cancel(); }

  void Next(Callback callback) override {
    // The callback may destroy this object.
    const std::shared_ptr<Pulled> pulled = pulled_;
    pulled->Next([take = take_, explain = explain_,
                  callback = std::move(callback)](typename Pulled::Result item) mutable {
      if (!item.ok()) {
        callback(explain(item.status()));
      } else if (!*item) {
        callback(std::nullopt);
      } else {
        callback(take(**item));
      }
    });
  }

  void Cancel() override { pulled_->Cancel(); }

 private:
  const std::shared_ptr<Pulled> pulled_;
  const Take take_;
  const Explain explain_;
};

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_ADAPTED_SOURCE_H_
