#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

class JobEvents : public ResponseSource<v1::JobEvent> {
 public:
  JobEvents(std::unique_ptr<EventSubscription> subscription, std::string name)
      : name_(std::move(name)), subscription_(std::move(subscription)) {}

  void Next(Callback callback) override {
    subscription_->Next(
        [callback = std::move(callback), name = name_](EventSubscription::Result event) mutable {
          if (!event.ok()) {
            callback(ExplainJobError(event.status(), name));
          } else if (*event == nullptr) {
            callback(std::nullopt);
          } else {
            callback(**event);
          }
        });
  }
  void Cancel() override { subscription_->Cancel(); }

 private:
  const std::string name_;
  const std::unique_ptr<EventSubscription> subscription_;
};

}  // namespace

Source<v1::JobEvent> WatchJob(const RpcContext& context, const v1::WatchJobRequest& request) {
  absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return id.status();
  if (request.after_sequence() < 0) {
    return FieldError("after_sequence",
                      absl::StrCat("is ", request.after_sequence(), "; must be at least 0"));
  }
  return std::make_unique<JobEvents>(context.events->Subscribe(*id, request.after_sequence()),
                                     request.name());
}

}  // namespace tandem::rpc
