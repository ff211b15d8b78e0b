#ifndef TANDEM_SERVER_RPC_POST_FOR_USER_H_
#define TANDEM_SERVER_RPC_POST_FOR_USER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

// Has `work(reply)` run on a thread of the pool, in the user's turn. Where too much of the user's is under
// way already, replies so at once (FairPool::Offer). `bytes` is the memory that is kept until the reply.
template <typename Response, typename Work>
void PostFor(FairPool* pool, const std::string& user, int64_t bytes, Reply<Response> reply, Work work) {
  pool->Offer(
      user, bytes,
      [reply = std::move(reply), work = std::move(work)](absl::StatusOr<FairPool::Hold> taken) mutable {
        if (!taken.ok()) return reply(taken.status());
        work([hold = *std::move(taken), reply = std::move(reply)](absl::StatusOr<Response> response) mutable {
          // Before the client may ask again.
          hold.Release();
          reply(std::move(response));
        });
      });
}

// The same on the pool for what users ask for. The request, which lives until its reply, is what is kept.
template <typename Response, typename Work>
void PostForUser(const RpcContext& context, const std::string& user, const google::protobuf::Message& request,
                 Reply<Response> reply, Work work) {
  PostFor(context.user_pool, user, static_cast<int64_t>(request.SpaceUsedLong()), std::move(reply),
          std::move(work));
}

// Counts so many bytes more until `reply`, which is that of a request that was posted so. False: there is no
// room for them, and it has replied so.
template <typename Response>
bool KeepMore(const RpcContext& context, const std::string& user, int64_t bytes, Reply<Response>& reply) {
  absl::StatusOr<FairPool::Hold> more = context.user_pool->HoldMore(user, bytes);
  if (!more.ok()) {
    reply(more.status());
    return false;
  }
  reply = [more = *std::move(more), reply = std::move(reply)](absl::StatusOr<Response> response) mutable {
    more.Release();
    reply(std::move(response));
  };
  return true;
}

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_POST_FOR_USER_H_
