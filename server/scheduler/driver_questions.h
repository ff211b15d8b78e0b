#ifndef TANDEM_SERVER_SCHEDULER_DRIVER_QUESTIONS_H_
#define TANDEM_SERVER_SCHEDULER_DRIVER_QUESTIONS_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem {

// Asks a driver, which may never answer, on a thread of its own: who asks waits no longer than he wants to,
// and the daemon ends even while the driver hangs. Thread-safe.
class DriverQuestions {
 public:
  // What it uses must live as long as it runs: it may outlive this object.
  using Question = std::function<absl::Status()>;

  DriverQuestions();
  // Stop(). A thread that hangs is left behind.
  ~DriverQuestions();
  DriverQuestions(const DriverQuestions&) = delete;
  DriverQuestions& operator=(const DriverQuestions&) = delete;

  // The answer. Questions are asked one after the other. UNAVAILABLE: there was none within `limit`, or an
  // earlier question has none for longer. CANCELLED: after Stop.
  absl::Status Ask(Question question, absl::Duration limit);

  // Who waits gets CANCELLED, and nothing more is asked. Idempotent.
  void Stop();

 private:
  struct State;

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_DRIVER_QUESTIONS_H_
