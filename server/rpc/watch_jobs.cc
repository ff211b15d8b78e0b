#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/adapted_source.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

v1::WatchJobsResponse ToResponse(const std::shared_ptr<const JobChange>& change) {
  v1::WatchJobsResponse response;
  response.set_cursor(change->cursor);
  response.set_job(change->event.job());
  response.set_sequence(change->event.sequence());
  *response.mutable_time() = change->event.time();
  *response.mutable_state_change() = change->event.state_change();
  return response;
}

}  // namespace

Source<v1::WatchJobsResponse> WatchJobs(const Caller& /*caller*/, const v1::WatchJobsRequest& request,
                                        EventHub* events) {
  if (request.after_cursor() < -1) {
    return FieldError("after_cursor", absl::StrCat("is ", request.after_cursor(),
                                                   "; it must be a cursor, 0 for all changes, or -1 for the "
                                                   "changes from now on"));
  }
  return std::make_unique<AdaptedSource<v1::WatchJobsResponse, std::shared_ptr<const JobChange>>>(
      events->SubscribeChanges(request.after_cursor()), &ToResponse);
}

}  // namespace tandem::rpc
