#ifndef TANDEM_SERVER_RPC_MODEL_CALL_SOURCE_H_
#define TANDEM_SERVER_RPC_MODEL_CALL_SOURCE_H_

#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/response_source.h"
#include "server/workers/model_workers.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem::rpc {

// The responses of a model call. Destroying or cancelling it ends the call's process.
template <typename Response>
class ModelCallSource : public ResponseSource<Response> {
 public:
  using Callback = typename ResponseSource<Response>::Callback;
  // Takes the response out of an output.
  using Take = Response (*)(internal::v1::ModelTaskOutput& output);

  ModelCallSource(std::shared_ptr<ModelCall> call, Take take) : call_(std::move(call)), take_(take) {}
  ~ModelCallSource() override { call_->Cancel(); }

  void Next(Callback callback) override {
    // The callback may destroy this object.
    const std::shared_ptr<ModelCall> call = call_;
    call->Next([take = take_, callback = std::move(callback)](ModelCall::Result result) mutable {
      if (!result.ok()) {
        callback(result.status());
      } else if (!result->has_value()) {
        callback(std::nullopt);
      } else {
        callback(take(**result));
      }
    });
  }

  void Cancel() override { call_->Cancel(); }

 private:
  const std::shared_ptr<ModelCall> call_;
  const Take take_;
};

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_MODEL_CALL_SOURCE_H_
