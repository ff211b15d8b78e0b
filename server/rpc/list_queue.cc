#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultQueuePageSize = 1000;
constexpr int kMaxQueuePageSize = 10000;

}  // namespace

void ListQueue(const RpcContext& context, const v1::ListQueueRequest& request,
               Reply<v1::ListQueueResponse> reply) {
  const int most = request.page_size() == 0 ? kDefaultQueuePageSize : request.page_size();
  if (most < 1 || most > kMaxQueuePageSize) {
    reply(FieldError("page_size",
                     absl::StrCat("is ", request.page_size(), "; must lie from 1 to ", kMaxQueuePageSize)));
    return;
  }
  // A long queue takes a while to explain.
  context.pool->Post(
      [&context, most, reply = std::move(reply)]() mutable { reply(context.scheduler->ListQueue(most)); });
}

}  // namespace tandem::rpc
