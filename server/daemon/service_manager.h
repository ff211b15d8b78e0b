#ifndef TANDEM_SERVER_DAEMON_SERVICE_MANAGER_H_
#define TANDEM_SERVER_DAEMON_SERVICE_MANAGER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// Tells the service manager that started this process how it is: systemd's sd_notify(3), which is a datagram
// of lines to a Unix socket, or nothing where there is none. Immutable, so thread-safe.
class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them out of the environment, so that no
  // child speaks for this process. Call before there are other threads.
  static ServiceManager FromEnvironment();

  // Nobody is told anything.
  ServiceManager() = default;
  ~ServiceManager();
  ServiceManager(ServiceManager&& other) noexcept;
  ServiceManager& operator=(ServiceManager&&) = delete;

  // The longest that it will wait from one Alive to the next before it takes this process for hung; infinite
  // where it does not watch.
  absl::Duration watchdog() const { return watchdog_; }

  // It serves; and what to show, in a line.
  void Ready(absl::string_view status) const;
  // It is on its way out.
  void Stopping() const;
  // It still does its work.
  void Alive() const;
  // What to show, in a line.
  void Show(absl::string_view status) const;

 private:
  // A message that does not arrive is no matter: it is told again, or nobody listens any more.
  void Send(const std::string& message) const;

  // The socket's path; an abstract one begins with a zero byte.
  std::string path_;
  int socket_ = -1;
  absl::Duration watchdog_ = absl::InfiniteDuration();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_SERVICE_MANAGER_H_
