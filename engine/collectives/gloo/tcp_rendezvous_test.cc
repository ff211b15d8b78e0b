#include "engine/collectives/gloo/tcp_rendezvous.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/collectives/gloo/gloo_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

// Returns a loopback port that was free a moment ago.
std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

TEST(TcpRendezvousTest, WhatOnePublishesTheOthersKnow) {
  const std::string address = FreeAddress();
  std::thread other([&] {
    const auto reached = TcpRendezvous::Reach(address, kLong);
    ASSERT_TRUE(reached.ok()) << reached.status();
    EXPECT_EQ((*reached)->host(), "127.0.0.1");
    EXPECT_TRUE((*reached)->Publish("theirs", std::string("\0two", 4)).ok());
    EXPECT_EQ((*reached)->Await("mine", kLong).value_or("none"), "one");
    EXPECT_EQ((*reached)->Await("nobody's", absl::Milliseconds(50)).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  });
  const auto served = TcpRendezvous::Serve(address, 1, kLong);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ((*served)->host(), "127.0.0.1");
  EXPECT_EQ((*served)->Await("theirs", kLong).value_or("none"), std::string("\0two", 4));
  EXPECT_TRUE((*served)->Publish("mine", "one").ok());
  other.join();
}

TEST(TcpRendezvousTest, SeveralRanksOfSeveralWorkersConnect) {
  const std::string address = FreeAddress();
  constexpr int kWorkers = 2, kRanks = 2;
  std::vector<std::unique_ptr<TcpRendezvous>> rendezvous(kWorkers);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      auto made = worker == 0 ? TcpRendezvous::Serve(address, kWorkers - 1, kLong)
                              : TcpRendezvous::Reach(address, kLong);
      ASSERT_TRUE(made.ok()) << made.status();
      rendezvous[worker] = *std::move(made);
      GlooOptions options;
      options.rank = worker * kRanks;
      options.world_size = kWorkers * kRanks;
      options.host = rendezvous[worker]->host();
      const auto ends = ConnectGlooRanks(options, kRanks, *rendezvous[worker]);
      ASSERT_TRUE(ends.ok()) << ends.status();
      ASSERT_EQ(ends->size(), kRanks);
      std::vector<std::thread> ranks;
      for (int i = 0; i < kRanks; ++i) {
        ranks.emplace_back([&, i] {
          EXPECT_EQ((*ends)[i]->rank(), worker * kRanks + i);
          double value = 1 + (*ends)[i]->rank();
          EXPECT_TRUE((*ends)[i]->AllReduce({&value, 1, DType::kFloat64}, ReduceOp::kSum).ok());
          EXPECT_EQ(value, 10);
        });
      }
      for (std::thread& rank : ranks) rank.join();
    });
  }
  for (std::thread& worker : workers) worker.join();
}

// Returns an address of this host for other hosts, or "" if there is none.
std::string OuterAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    const bool serves = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!serves || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof(text));
    found = text;
  }
  freeifaddrs(all);
  return found;
}

// For example, a host's own name may mean its loopback interface in a group with other hosts.
TEST(TcpRendezvousTest, LoopbackAddressesAreNotForOtherHosts) {
  const std::string outer = OuterAddress();
  if (outer.empty()) GTEST_SKIP() << "this machine has no network";
  const std::string address = FreeAddress();
  const std::string port = address.substr(address.find(':'));
  std::vector<std::thread> others;
  for (const std::string& seen : {"127.0.0.1" + port, "127.0.1.1" + port, outer + port}) {
    others.emplace_back([seen, &outer] {
      const auto reached = TcpRendezvous::Reach(seen, kLong);
      ASSERT_TRUE(reached.ok()) << reached.status();
      EXPECT_EQ((*reached)->host(), outer) << "by " << seen;
      EXPECT_TRUE((*reached)->Publish(absl::StrCat("done-", seen), "").ok());
    });
  }
  const auto served = TcpRendezvous::Serve("127.0.1.1" + port, 3, kLong);
  EXPECT_EQ(served.ok() ? (*served)->host() : served.status().ToString(), outer);
  // The server stays until all have found their values.
  for (std::thread& other : others) other.join();
}

int CountEntries(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

// Sixteen ranks ask a thousand questions, and most limits on open files are a thousand.
TEST(TcpRendezvousTest, WhatIsAnsweredIsForgotten) {
  const std::string address = FreeAddress();
  std::unique_ptr<TcpRendezvous> reached;
  std::thread other([&] {
    auto made = TcpRendezvous::Reach(address, kLong);
    ASSERT_TRUE(made.ok()) << made.status();
    reached = *std::move(made);
  });
  const auto served = TcpRendezvous::Serve(address, 1, kLong);
  other.join();
  ASSERT_TRUE(served.ok() && reached != nullptr) << served.status();
  const int files = CountEntries("/proc/self/fd");
  const int threads = CountEntries("/proc/self/task");
  constexpr int kQuestions = 200;
  for (int i = 0; i < kQuestions; ++i) {
    const std::string key = absl::StrCat("key-", i);
    ASSERT_TRUE(reached->Publish(key, "value").ok());
    ASSERT_EQ((*served)->Await(key, kLong).value_or("none"), "value");
  }
  // The last answers may still be on the wire.
  const absl::Time deadline = absl::Now() + kLong;
  while ((CountEntries("/proc/self/fd") > files || CountEntries("/proc/self/task") > threads) &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_LE(CountEntries("/proc/self/fd"), files);
  EXPECT_LE(CountEntries("/proc/self/task"), threads);
}

// For example, Slurm suspends and resumes a job while its workers connect.
TEST(TcpRendezvousTest, ASignalDoesNotEndAWait) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &ignore, &before), 0);
  const std::string address = FreeAddress();
  std::thread other([&] {
    const auto reached = TcpRendezvous::Reach(address, kLong);
    ASSERT_TRUE(reached.ok()) << reached.status();
    const auto value = (*reached)->Await("late", kLong);
    EXPECT_EQ(value.value_or("none"), "value") << value.status();
  });
  const auto served = TcpRendezvous::Serve(address, 1, kLong);
  ASSERT_TRUE(served.ok()) << served.status();
  for (int i = 0; i < 20; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
    pthread_kill(other.native_handle(), SIGUSR1);
  }
  EXPECT_TRUE((*served)->Publish("late", "value").ok());
  other.join();
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(TcpRendezvousTest, AddressesThatAreNone) {
  for (const char* address : {"", "localhost", "localhost:", "localhost:0", "localhost:65536", ":29500"}) {
    EXPECT_EQ(TcpRendezvous::Serve(address, 1, kLong).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(TcpRendezvous::Reach(address, kLong).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(TcpRendezvousTest, NobodyComes) {
  const std::string address = FreeAddress();
  EXPECT_EQ(TcpRendezvous::Reach(address, absl::Milliseconds(10)).status().code(),
            absl::StatusCode::kUnavailable);
  const absl::Status status = TcpRendezvous::Serve(address, 2, absl::Milliseconds(10)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(status.message(), HasSubstr("0 of 2 other workers came"));
}

}  // namespace
}  // namespace tandem
