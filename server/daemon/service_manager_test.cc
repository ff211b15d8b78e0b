#include "server/daemon/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Stands for systemd: a datagram socket at a path or an abstract name ("@...").
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& name) : name_(name), socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0)
        << strerror(errno);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~NotifySocket() {
    close(socket_);
    if (name_[0] != '@') unlink(name_.c_str());
    for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(variable);
  }
  // Returns the next message, which has already arrived.
  std::string Take() {
    char buffer[1024];
    const ssize_t got = recv(socket_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return got < 0 ? "" : std::string(buffer, got);
  }

 private:
  const std::string name_;
  const int socket_;
};

class ServiceManagerTest : public testing::TestWithParam<bool> {
 protected:
  NotifySocket socket_{GetParam() ? absl::StrCat("@tandem-test-", getpid())
                                  : absl::StrCat("/tmp/tandem-notify-", getpid())};
};

INSTANTIATE_TEST_SUITE_P(PathAndAbstract, ServiceManagerTest, testing::Bool());

TEST_P(ServiceManagerTest, SaysHowTheDaemonIs) {
  setenv("WATCHDOG_USEC", "60000000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  const ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_EQ(manager.watchdog(), absl::Minutes(1));
  // Children do not inherit the variables.
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(getenv(variable), nullptr) << variable;
  }
  manager.Ready("listens\non 1.2.3.4");
  EXPECT_EQ(socket_.Take(), "READY=1\nSTATUS=listens on 1.2.3.4");
  manager.Alive();
  EXPECT_EQ(socket_.Take(), "WATCHDOG=1");
  manager.Show("the disk is full");
  EXPECT_EQ(socket_.Take(), "STATUS=the disk is full");
  manager.Stopping();
  EXPECT_THAT(socket_.Take(), HasSubstr("STOPPING=1\n"));
  manager.ExtendStop(absl::Seconds(4.5));
  EXPECT_EQ(socket_.Take(), "EXTEND_TIMEOUT_USEC=4500000");
}

TEST_P(ServiceManagerTest, AnothersWatchdogIsNotThisOnes) {
  setenv("WATCHDOG_USEC", "60000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog(), absl::InfiniteDuration());
}

TEST(ServiceManagerAloneTest, NobodyIsTold) {
  unsetenv("NOTIFY_SOCKET");
  ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_EQ(manager.watchdog(), absl::InfiniteDuration());
  manager.Ready("x");
  for (const char* wrong : {"", "@", "relative/path", "vsock:2:1234"}) {
    setenv("NOTIFY_SOCKET", wrong, 1);
    ServiceManager::FromEnvironment().Alive();
  }
  setenv("NOTIFY_SOCKET", absl::StrCat("/", std::string(500, 'x')).c_str(), 1);
  ServiceManager::FromEnvironment().Alive();
  // No socket exists at this path.
  setenv("NOTIFY_SOCKET", "/tmp/tandem-no-such-socket", 1);
  ServiceManager::FromEnvironment().Alive();
}

}  // namespace
}  // namespace tandem
