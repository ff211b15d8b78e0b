#include "server/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tandem {
namespace {

// Returns and removes an environment variable; empty if unset.
std::string TakeVariable(const char* name) {
  const char* value = getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

// Returns a message with the status in one line.
std::string StatusLine(absl::string_view status) {
  return absl::StrCat("STATUS=", absl::StrReplaceAll(status, {{"\n", " "}}));
}

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  ServiceManager manager;
  std::string path = TakeVariable("NOTIFY_SOCKET");
  const std::string watchdog = TakeVariable("WATCHDOG_USEC");
  const std::string watched = TakeVariable("WATCHDOG_PID");
  // Only paths and abstract names are supported.
  if (path.size() < 2 || (path[0] != '/' && path[0] != '@') || path.size() > sizeof(sockaddr_un::sun_path)) {
    return manager;
  }
  if (path[0] == '@') path[0] = '\0';
  manager.path_ = std::move(path);
  manager.socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int64_t microseconds = 0;
  int64_t pid = 0;
  const bool is_watched = watched.empty() || (absl::SimpleAtoi(watched, &pid) && pid == getpid());
  if (is_watched && absl::SimpleAtoi(watchdog, &microseconds) && microseconds > 0) {
    manager.watchdog_ = absl::Microseconds(microseconds);
  }
  return manager;
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) close(socket_);
}

ServiceManager::ServiceManager(ServiceManager&& other) noexcept
    : path_(std::move(other.path_)), socket_(std::exchange(other.socket_, -1)), watchdog_(other.watchdog_) {}

void ServiceManager::Ready(absl::string_view status) const {
  Send(absl::StrCat("READY=1\n", StatusLine(status)));
}

void ServiceManager::Stopping() const { Send("STOPPING=1\nSTATUS=stopping; workers continue"); }

void ServiceManager::ExtendStop(absl::Duration time) const {
  Send(absl::StrCat("EXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(time)));
}

void ServiceManager::Alive() const { Send("WATCHDOG=1"); }

void ServiceManager::Show(absl::string_view status) const { Send(StatusLine(status)); }

void ServiceManager::Send(const std::string& message) const {
  if (socket_ < 0) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path_.data(), path_.size());
  // An abstract name has an explicit length. A path ends at its zero byte.
  const size_t length = offsetof(sockaddr_un, sun_path) + path_.size();
  [[maybe_unused]] const ssize_t sent =
      sendto(socket_, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
             reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

}  // namespace tandem
