#ifndef TANDEM_SERVER_DAEMON_STOP_SIGNALS_H_
#define TANDEM_SERVER_DAEMON_STOP_SIGNALS_H_

#include <functional>
#include <thread>

namespace tandem {

// Turns SIGTERM and SIGINT into calls on a normal thread. Blocks both signals in every thread that starts
// later, until destroyed. Ignores SIGPIPE for good.
class StopSignals {
 public:
  // Calls `stop` with the signal's name for each signal. Create it before other threads start.
  explicit StopSignals(std::function<void(const char* name)> stop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void Run();

  const std::function<void(const char* name)> stop_;
  int signals_ = -1;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_STOP_SIGNALS_H_
