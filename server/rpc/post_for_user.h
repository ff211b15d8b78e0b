#ifndef TANDEM_SERVER_RPC_POST_FOR_USER_H_
#define TANDEM_SERVER_RPC_POST_FOR_USER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

// Has `work(reply)` run on a thread of the pool, in the user's turn. Where too much of the user's is under
// way already, replies so at once (FairPool::Offer). If nobody wants the answer any more, the work is
// dropped: at its turn, or at FairPool::DropUnwanted. `bytes` is the memory that is kept until the reply.
template <typename Response, typename Work>
void PostFor(FairPool* pool, const std::string& user, int64_t bytes, Reply<Response> reply, Work work) {
  std::shared_ptr<const CallInterest> interest = reply.interest();
  pool->Offer(
      user, bytes,
      [reply = std::move(reply), work = std::move(work)](absl::StatusOr<FairPool::Hold> taken) mutable {
        if (!taken.ok()) return reply(taken.status());
        if (absl::Status status = reply.CheckBeforeWork(); !status.ok()) return reply(std::move(status));
        reply.Keep(*std::move(taken));
        work(std::move(reply));
      },
      std::move(interest));
}

// The same on the pool for what users ask for. The request, which lives until its reply, is what is kept.
template <typename Response, typename Work>
void PostForUser(const RpcContext& context, const std::string& user, const google::protobuf::Message& request,
                 Reply<Response> reply, Work work) {
  PostFor(context.user_pool, user, static_cast<int64_t>(request.SpaceUsedLong()), std::move(reply),
          std::move(work));
}

// The same on the pool for looks at the database and at files that take a moment.
template <typename Response, typename Work>
void PostToLook(const RpcContext& context, const Caller& caller, const google::protobuf::Message& request,
                Reply<Response> reply, Work work) {
  PostFor(context.pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()), std::move(reply),
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
  reply.Keep(*std::move(more));
  return true;
}

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_POST_FOR_USER_H_
