#ifndef TANDEM_SERVER_DAEMON_SERVICE_MANAGER_H_
#define TANDEM_SERVER_DAEMON_SERVICE_MANAGER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// Reports this process's state to the service manager that started it, by systemd's protocol: sd_notify(3)
// sends lines in a datagram to a Unix socket. Does nothing without a socket. Immutable, so thread-safe.
class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the environment, so that no
  // child reports for this process. Call before other threads start.
  static ServiceManager FromEnvironment();

  // Reports to nobody.
  ServiceManager() = default;
  ~ServiceManager();
  ServiceManager(ServiceManager&& other) noexcept;
  ServiceManager& operator=(ServiceManager&&) = delete;

  // Returns the longest time between two calls of Alive before the service manager restarts this process.
  // Infinite without a watchdog.
  absl::Duration watchdog() const { return watchdog_; }

  // Reports that the process serves, and a status line.
  void Ready(absl::string_view status) const;
  // Reports that the process is stopping.
  void Stopping() const;
  // Asks for this much more time from now on to stop. Call again before the time is over.
  void ExtendStop(absl::Duration time) const;
  // Reports that the process works.
  void Alive() const;
  // Sends a new status line.
  void Show(absl::string_view status) const;

 private:
  // Ignores errors: a lost message is repeated later, or nobody listens.
  void Send(const std::string& message) const;

  // The socket's path. An abstract name begins with a zero byte.
  std::string path_;
  int socket_ = -1;
  absl::Duration watchdog_ = absl::InfiniteDuration();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_SERVICE_MANAGER_H_
