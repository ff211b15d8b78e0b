#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

v1::WatchJobsResponse ToResponse(const JobChange& change) {
  v1::WatchJobsResponse response;
  response.set_cursor(change.cursor);
  response.set_job(change.event.job());
  response.set_sequence(change.event.sequence());
  *response.mutable_time() = change.event.time();
  *response.mutable_state_change() = change.event.state_change();
  return response;
}

class JobChanges : public ResponseSource<v1::WatchJobsResponse> {
 public:
  explicit JobChanges(std::unique_ptr<ChangeSubscription> subscription)
      : subscription_(std::move(subscription)) {}

  void Next(Callback callback) override {
    subscription_->Next([callback = std::move(callback)](ChangeSubscription::Result change) mutable {
      if (!change.ok()) {
        callback(change.status());
      } else if (*change == nullptr) {
        callback(std::nullopt);
      } else {
        callback(ToResponse(**change));
      }
    });
  }
  void Cancel() override { subscription_->Cancel(); }

 private:
  const std::unique_ptr<ChangeSubscription> subscription_;
};

}  // namespace

Source<v1::WatchJobsResponse> WatchJobs(const RpcContext& context, const v1::WatchJobsRequest& request) {
  if (request.after_cursor() < -1) {
    return FieldError("after_cursor", absl::StrCat("is ", request.after_cursor(),
                                                   "; must be a cursor, 0 for all changes, or -1 for "
                                                   "those from now on"));
  }
  return std::make_unique<JobChanges>(context.events->SubscribeChanges(request.after_cursor()));
}

}  // namespace tandem::rpc
