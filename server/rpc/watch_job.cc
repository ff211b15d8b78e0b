#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/adapted_source.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

Source<v1::JobEvent> WatchJob(const Caller& /*caller*/, const v1::WatchJobRequest& request,
                              EventHub* events) {
  absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return id.status();
  if (request.after_sequence() < 0) {
    return FieldError("after_sequence",
                      absl::StrCat("is ", request.after_sequence(), "; it must be at least 0"));
  }
  return std::make_unique<AdaptedSource<v1::JobEvent, std::shared_ptr<const v1::JobEvent>>>(
      events->Subscribe(*id, request.after_sequence()),
      [](const std::shared_ptr<const v1::JobEvent>& event) { return *event; },
      [name = request.name()](const absl::Status& status) { return ExplainJobError(status, name); });
}

}  // namespace tandem::rpc
