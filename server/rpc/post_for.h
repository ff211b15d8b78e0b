#ifndef TANDEM_SERVER_RPC_POST_FOR_H_
#define TANDEM_SERVER_RPC_POST_FOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "server/auth/caller.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/reply.h"

namespace tandem::rpc {

// Runs `work(reply)` on a thread of the pool, in the caller's turn. If too much of the caller's work is in
// progress, replies with that error at once (FairPool::Offer). Drops the work if nobody wants the answer any
// more, at its turn or at FairPool::DropUnwanted. Counts the request, which lives until its reply.
template <typename Response, typename Work>
void PostFor(FairPool* pool, const Caller& caller, const google::protobuf::Message& request,
             Reply<Response> reply, Work work) {
  std::shared_ptr<const CallInterest> interest = reply.interest();
  pool->Offer(
      caller.user, static_cast<int64_t>(request.SpaceUsedLong()),
      [reply = std::move(reply), work = std::move(work)](absl::StatusOr<FairPool::Hold> taken) mutable {
        if (!taken.ok()) return reply(taken.status());
        if (absl::Status status = reply.CheckBeforeWork(); !status.ok()) return reply(std::move(status));
        reply.Keep(*std::move(taken));
        work(std::move(reply));
      },
      std::move(interest));
}

// Counts more memory until `reply`, the reply of a request posted to `pool`. Returns false if no room is
// left, after replying with that error.
template <typename Response>
bool KeepMore(FairPool* pool, const Caller& caller, int64_t bytes, Reply<Response>& reply) {
  absl::StatusOr<FairPool::Hold> more = pool->HoldMore(caller.user, bytes);
  if (!more.ok()) {
    reply(more.status());
    return false;
  }
  reply.Keep(*std::move(more));
  return true;
}

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_POST_FOR_H_
