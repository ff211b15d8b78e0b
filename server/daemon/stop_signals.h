#ifndef TANDEM_SERVER_DAEMON_STOP_SIGNALS_H_
#define TANDEM_SERVER_DAEMON_STOP_SIGNALS_H_

#include <functional>
#include <thread>

namespace tandem {

// Turns SIGTERM and SIGINT into calls on a thread, where anything may be done. While it lives, both are
// blocked in every thread that is started after it; SIGPIPE is ignored for good.
class StopSignals {
 public:
  // `stop` is called with the signal's name at each signal. Make it before there are other threads.
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
