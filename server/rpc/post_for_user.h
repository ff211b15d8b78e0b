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

// Runs `work(reply)` on a thread of the pool, in the user's turn. If too much of the user's work is in
// progress, replies with that error at once (FairPool::Offer). Drops the work if nobody wants the answer any
// more, at its turn or at FairPool::DropUnwanted. `bytes` is the memory kept until the reply.
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

// The same on the pool for users' long work. Counts the request, which lives until its reply.
template <typename Response, typename Work>
void PostForUser(const RpcContext& context, const std::string& user, const google::protobuf::Message& request,
                 Reply<Response> reply, Work work) {
  PostFor(context.user_pool, user, static_cast<int64_t>(request.SpaceUsedLong()), std::move(reply),
          std::move(work));
}

// The same on the pool for short reads of the database and files.
template <typename Response, typename Work>
void PostToLook(const RpcContext& context, const Caller& caller, const google::protobuf::Message& request,
                Reply<Response> reply, Work work) {
  PostFor(context.pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()), std::move(reply),
          std::move(work));
}

// Counts more memory until `reply`, the reply of a request posted this way. Returns false if no room is left,
// after replying with that error.
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
