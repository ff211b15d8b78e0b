#include <memory>
#include <optional>
#include <utility>

#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/datasets/upload_folder.h"
#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {
namespace {

// Writes the messages on the pool, one at a time.
class UploadSink : public RequestSink<v1::UploadFilesRequest, v1::Upload> {
 public:
  UploadSink(Caller caller, Uploads* uploads, FairPool* user_pool)
      : state_(std::make_shared<State>(std::move(caller), uploads)), user_pool_(user_pool) {}

  void Take(v1::UploadFilesRequest request, Completion<absl::Status> done) override {
    if (request.ByteSizeLong() > 2 * kMaxUploadPiece) {
      done(FieldError("data",
                      absl::StrCat("has more than ", kMaxUploadPiece, " bytes, the most for one message")));
      return;
    }
    const auto bytes = static_cast<int64_t>(request.SpaceUsedLong());
    user_pool_->Offer(state_->caller.user, bytes,
                      [state = state_, request = std::move(request),
                       done = std::move(done)](absl::StatusOr<FairPool::Hold> taken) mutable {
                        done(taken.ok() ? state->Take(request) : taken.status());
                      });
  }

  void Finish(Completion<absl::StatusOr<v1::Upload>> done) override {
    user_pool_->Post(state_->caller.user,
                     [state = state_, done = std::move(done)]() mutable { done(state->Finish()); });
  }

  void Abandon() override {
    // The received data is kept.
    user_pool_->Post(state_->caller.user, [state = state_] { state->Finish().IgnoreError(); });
  }

 private:
  // Only one task of the pool at a time uses it.
  struct State {
    State(Caller who, Uploads* where) : caller(std::move(who)), uploads(where) {}

    absl::Status Take(const v1::UploadFilesRequest& request) {
      if (call == nullptr) {
        TANDEM_ASSIGN_OR_RETURN(const std::string id, ParseUploadName(request.name()));
        TANDEM_RETURN_IF_ERROR(CheckUploadOwner(caller, id, uploads));
        TANDEM_ASSIGN_OR_RETURN(call, uploads->Begin(id));
      } else if (!request.name().empty()) {
        return FieldError("name", "is allowed only in the first message of a call");
      }
      return call->Take(request);
    }

    absl::StatusOr<v1::Upload> Finish() {
      if (call == nullptr) return FieldError("name", "is required in the first message: \"uploads/<id>\"");
      return call->Finish();
    }

    const Caller caller;
    Uploads* const uploads;
    std::unique_ptr<Uploads::Call> call;
  };

  const std::shared_ptr<State> state_;
  FairPool* const user_pool_;
};

}  // namespace

std::unique_ptr<RequestSink<v1::UploadFilesRequest, v1::Upload>> UploadFiles(const Caller& caller,
                                                                             Uploads* uploads,
                                                                             FairPool* user_pool) {
  return std::make_unique<UploadSink>(caller, uploads, user_pool);
}

}  // namespace tandem::rpc
