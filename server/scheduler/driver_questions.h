#ifndef TANDEM_SERVER_SCHEDULER_DRIVER_QUESTIONS_H_
#define TANDEM_SERVER_SCHEDULER_DRIVER_QUESTIONS_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem {

// Asks a driver that may never answer, on its own thread. So callers wait no longer than their limit, and the
// daemon can exit while the driver hangs. Thread-safe.
class DriverQuestions {
 public:
  // A question may outlive this object, so it must own everything that it uses.
  using Question = std::function<absl::Status()>;

  DriverQuestions();
  // Calls Stop. Leaves a hanging thread behind.
  ~DriverQuestions();
  DriverQuestions(const DriverQuestions&) = delete;
  DriverQuestions& operator=(const DriverQuestions&) = delete;

  // Returns the answer. Questions run one after another. UNAVAILABLE: no answer within `limit`, perhaps
  // because an earlier question hangs. CANCELLED: Stop was called.
  absl::Status Ask(Question question, absl::Duration limit);

  // Waiting callers get CANCELLED, and no more questions run. Idempotent.
  void Stop();

 private:
  struct State;

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_DRIVER_QUESTIONS_H_
