#include "server/rpc/connection_gate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "engine/base/mutex.h"

namespace tandem {
namespace {

// Keeps connections like a server, until told to close one.
class FakeAcceptor : public ConnectionGate::Acceptor {
 public:
  struct Kept {
    Mutex mutex;
    std::vector<int> fds ABSL_GUARDED_BY(mutex);
  };
  explicit FakeAcceptor(Kept* kept) : kept_(kept) {}
  void HandleNewConnection(NewConnectionParameters* p) override {
    MutexLock lock(&kept_->mutex);
    kept_->fds.push_back(p->fd);
  }

 private:
  Kept* const kept_;
};

class ConnectionGateTest : public testing::Test {
 protected:
  void Open(int most, ConnectionGate::Look look = nullptr, const std::string& host = "127.0.0.1") {
    auto gate = ConnectionGate::Listen({host, 0}, {.most = most});
    ASSERT_TRUE(gate.ok()) << gate.status();
    gate_ = *std::move(gate);
    gate_->Start(std::make_unique<FakeAcceptor>(&kept_), std::move(look));
  }
  void TearDown() override {
    gate_ = nullptr;
    for (const int fd : clients_) close(fd);
    MutexLock lock(&kept_.mutex);
    for (const int fd : kept_.fds) close(fd);
  }
  // Connects from an address of the loopback network.
  int Connect(const char* from = "127.0.0.1") {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own = {}, to = {};
    own.sin_family = to.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(gate_->port()));
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    clients_.push_back(fd);
    return fd;
  }
  // Returns true if the gate closes the connection soon.
  static bool IsRefused(int fd, int milliseconds = 60'000) {
    pollfd event = {fd, POLLIN, 0};
    return poll(&event, 1, milliseconds) == 1;
  }
  size_t LetIn() {
    MutexLock lock(&kept_.mutex);
    return kept_.fds.size();
  }
  bool ComeIn(size_t count) {
    for (int i = 0; i < 6000 && LetIn() < count; ++i) absl::SleepFor(absl::Milliseconds(10));
    return LetIn() == count;
  }

  FakeAcceptor::Kept kept_;
  std::unique_ptr<ConnectionGate> gate_;
  std::vector<int> clients_;
};

TEST_F(ConnectionGateTest, SoManyAtATimeAndHalfOfOneAddress) {
  Open(4);
  EXPECT_GT(gate_->port(), 0);
  for (int i = 0; i < 2; ++i) Connect();
  EXPECT_TRUE(ComeIn(2));
  EXPECT_TRUE(IsRefused(Connect()));
  // Another address is still accepted.
  Connect("127.0.0.2");
  Connect("127.0.0.2");
  EXPECT_TRUE(ComeIn(4));
  EXPECT_TRUE(IsRefused(Connect("127.0.0.3")));
  EXPECT_FALSE(IsRefused(clients_[0], 0)) << "one that was let in is not touched";
  // After the server has closed a connection, there is room, even if another file has its number.
  int number = -1;
  {
    MutexLock lock(&kept_.mutex);
    number = kept_.fds[0];
  }
  const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(dup2(other, number), number);
  close(other);
  Connect();
  EXPECT_TRUE(ComeIn(5));
  EXPECT_TRUE(IsRefused(Connect("127.0.0.3")));
}

// Several gates share the files of a process.
TEST_F(ConnectionGateTest, HasAPartOfTheFilesThatMayBeOpen) {
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = 800;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  for (const auto& [part, most] : {std::pair(2, 400), std::pair(4, 200)}) {
    const auto gate = ConnectionGate::Listen({"127.0.0.1", 0}, {.most = 4096, .files_per_connection = part});
    ASSERT_TRUE(gate.ok()) << gate.status();
    EXPECT_EQ((*gate)->most(), most);
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

class ManyConnectionsTest : public ConnectionGateTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutALook, ManyConnectionsTest, testing::Bool());

// A full gate finds closed connections at once.
TEST_P(ManyConnectionsTest, OneAfterTheOther) {
  ConnectionGate::Look look;
  if (GetParam()) look = [] { return Harm(); };
  Open(4, std::move(look));
  for (size_t i = 1; i <= 100; ++i) {
    Connect();
    ASSERT_TRUE(ComeIn(i)) << i;
    MutexLock lock(&kept_.mutex);
    close(kept_.fds.back());
    kept_.fds.back() = -1;
  }
}

// As on a busy machine: a look takes a second, and uses no processor time.
TEST_F(ConnectionGateTest, ALookThatWaitsIsFollowedByAnotherSoon) {
  Mutex mutex;
  int looks = 0;
  Open(4, [&] {
    {
      MutexLock lock(&mutex);
      ++looks;
    }
    absl::SleepFor(absl::Seconds(1));
    return Harm();
  });
  Connect();
  {
    MutexLock lock(&mutex);
    const auto has_two = [&looks] { return looks >= 2; };
    // 20 times the look's duration would be longer.
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&has_two), absl::Seconds(15)));
  }
  gate_->Stop();
}

TEST_F(ConnectionGateTest, ListensNoMoreOnceStopped) {
  Open(0);
  EXPECT_GE(gate_->most(), 100) << "half of the files that may be open";
  Connect();
  EXPECT_TRUE(ComeIn(1));
  const int port = gate_->port();
  auto taken = ConnectionGate::Listen({"127.0.0.1", port}, {.most = 4});
  EXPECT_TRUE(absl::IsFailedPrecondition(taken.status())) << taken.status();
  gate_->Stop();
  EXPECT_TRUE(ConnectionGate::Listen({"127.0.0.1", port}, {.most = 4}).ok());
  EXPECT_FALSE(IsRefused(clients_[0], 0));
}

TEST_F(ConnectionGateTest, WhereItCannotListen) {
  EXPECT_TRUE(absl::IsFailedPrecondition(ConnectionGate::Listen({"192.0.2.1", 0}, {.most = 4}).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ConnectionGate::Listen({"no.such.host.invalid", 0}, {.most = 4}).status()));
  // All addresses of a name have the same port.
  auto local = ConnectionGate::Listen({"localhost", 0}, {.most = 4});
  EXPECT_TRUE(local.ok()) << local.status();
}

// Returns an address of this machine outside loopback; empty if none.
std::string OwnAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  char text[INET_ADDRSTRLEN] = "";
  for (const ifaddrs* one = all; one != nullptr && text[0] == '\0'; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const in_addr& address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (ntohl(address.s_addr) >> 24 != 127) inet_ntop(AF_INET, &address, text, sizeof(text));
  }
  freeifaddrs(all);
  return text;
}

TEST_F(ConnectionGateTest, AnAddressBesideLoopbackHasAHundredNewOnesASecond) {
  const std::string own = OwnAddress();
  if (own.empty()) GTEST_SKIP() << "this machine has no address but loopback's";
  Open(1000, nullptr, "0.0.0.0");
  std::vector<int> others;
  // Two of the gate's seconds at most.
  for (int i = 0; i < 250; ++i) others.push_back(Connect(own.c_str()));
  for (int i = 0; i < 150; ++i) Connect();
  int refused = 0;
  for (int i = 0; i < 6000 && LetIn() + refused < 400; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
    refused = 0;
    for (const int fd : others) refused += IsRefused(fd, 0);
  }
  EXPECT_EQ(LetIn() + refused, 400);
  EXPECT_GE(refused, 50);
  EXPECT_LE(refused, 150);
}

class HarmTest : public ConnectionGateTest {
 protected:
  void OpenOn(const std::string& host) {
    Open(
        100,
        [this] {
          MutexLock lock(&mutex_);
          return Harm{.peers = harm_};
        },
        host);
  }
  // Makes the gate's look find a connection harmful.
  void Accuse(int fd) {
    sockaddr_in own = {};
    socklen_t size = sizeof(own);
    ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size), 0);
    MutexLock lock(&mutex_);
    harm_.push_back({std::string(reinterpret_cast<const char*>(&own.sin_addr), 4), ntohs(own.sin_port)});
  }

  Mutex mutex_;
  std::vector<PeerAddress> harm_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(HarmTest, AConnectionThatDoesHarmIsShutAndItsAddressRefused) {
  const std::string own = OwnAddress();
  if (own.empty()) GTEST_SKIP() << "this machine has no address but loopback's";
  OpenOn("0.0.0.0");
  const int bad = Connect(own.c_str()), neighbour = Connect(own.c_str()), other = Connect();
  ASSERT_TRUE(ComeIn(3));
  Accuse(bad);
  EXPECT_TRUE(IsRefused(bad));
  EXPECT_FALSE(IsRefused(neighbour, 0));
  EXPECT_FALSE(IsRefused(other, 0));
  EXPECT_TRUE(IsRefused(Connect(own.c_str())));
  Connect();
  EXPECT_TRUE(ComeIn(4));
}

// All users of this machine use loopback.
TEST_F(HarmTest, LoopbackIsShutAndNotRefused) {
  OpenOn("127.0.0.1");
  const int bad = Connect(), neighbour = Connect();
  ASSERT_TRUE(ComeIn(2));
  Accuse(bad);
  EXPECT_TRUE(IsRefused(bad));
  EXPECT_FALSE(IsRefused(neighbour, 0));
  const int again = Connect();
  EXPECT_TRUE(ComeIn(3));
  EXPECT_FALSE(IsRefused(again, 0));
}

}  // namespace
}  // namespace tandem
