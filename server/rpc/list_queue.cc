#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultQueuePageSize = 1000;
constexpr int kMaxQueuePageSize = 10000;

}  // namespace

void ListQueue(const RpcContext& context, const Caller& caller, const v1::ListQueueRequest& request,
               Reply<v1::ListQueueResponse> reply) {
  const int most = request.page_size() == 0 ? kDefaultQueuePageSize : request.page_size();
  if (most < 1 || most > kMaxQueuePageSize) {
    reply(FieldError("page_size",
                     absl::StrCat("is ", request.page_size(), "; must lie from 1 to ", kMaxQueuePageSize)));
    return;
  }
  // A long queue takes a while to explain.
  PostToLook(
      context, caller, request, std::move(reply),
      [&context, most](Reply<v1::ListQueueResponse> reply) { reply(context.scheduler->ListQueue(most)); });
}

}  // namespace tandem::rpc
