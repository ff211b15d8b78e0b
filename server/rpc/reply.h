#ifndef TANDEM_SERVER_RPC_REPLY_H_
#define TANDEM_SERVER_RPC_REPLY_H_

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/call_interest.h"
#include "server/rpc/completion.h"
#include "server/rpc/fair_pool.h"

namespace tandem {

// The answer of a unary call, like a Completion. Thread-compatible.
template <typename Response>
class Reply {
 public:
  using Answer = Completion<absl::StatusOr<Response>>;

  // Returns OK if the work for an answer may begin.
  using Check = absl::AnyInvocable<absl::Status() const>;

  // Does nothing when called or destroyed.
  Reply() = default;
  // Without `interest`, the answer is always wanted. Without `check`, work may always begin.
  Reply(Answer answer, std::shared_ptr<const CallInterest> interest, Check check = nullptr)
      : answer_(std::move(answer)), interest_(std::move(interest)), check_(std::move(check)) {}
  template <typename Function,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, Reply> &&
                                        std::is_invocable_v<Function, absl::StatusOr<Response>>>>
  Reply(Function&& answer) : answer_(std::forward<Function>(answer)) {}  // NOLINT: as a function is.

  void operator()(absl::StatusOr<Response> response) {
    // Release the memory before the client can call again.
    holds_.clear();
    answer_(std::move(response));
  }

  // If false, work for the answer may be dropped.
  bool is_wanted() const { return interest_ == nullptr || !interest_->is_lost(); }
  // Call before the work for the answer begins, and reply with its error, if any. CANCELLED: nobody waits for
  // the answer. RESOURCE_EXHAUSTED: the user has too many bytes of unread answers.
  absl::Status CheckBeforeWork() const {
    if (!is_wanted()) return absl::CancelledError("the client cancelled the call");
    return check_ == nullptr ? absl::OkStatus() : check_();
  }
  // Null: the answer is always wanted.
  const std::shared_ptr<const CallInterest>& interest() const { return interest_; }

  // Counts this memory until the answer.
  void Keep(FairPool::Hold hold) { holds_.push_back(std::move(hold)); }
  // Keeps the request as long as this object. The handler must not use the request afterwards.
  void KeepRequest(std::shared_ptr<const void> request) { request_ = std::move(request); }

 private:
  // Destroyed last.
  Answer answer_;
  std::shared_ptr<const CallInterest> interest_;
  Check check_;
  std::shared_ptr<const void> request_;
  std::vector<FairPool::Hold> holds_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_REPLY_H_
