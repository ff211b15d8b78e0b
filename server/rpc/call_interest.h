#ifndef TANDEM_SERVER_RPC_CALL_INTEREST_H_
#define TANDEM_SERVER_RPC_CALL_INTEREST_H_

#include <atomic>

namespace tandem {

// Tells if somebody still waits for a call's answer. Thread-safe.
class CallInterest {
 public:
  bool is_lost() const { return lost_.load(std::memory_order_relaxed); }
  // The client went away, or its token was revoked.
  void Lose() { lost_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> lost_ = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_INTEREST_H_
