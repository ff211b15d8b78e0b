#include "engine/collectives/gloo/tcp_rendezvous.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/collectives/gloo/gloo_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

// A port of the loopback interface that was free a moment ago.
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
  const auto served = TcpRendezvous::Serve(address, kLong);
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
      auto made = worker == 0 ? TcpRendezvous::Serve(address, kLong) : TcpRendezvous::Reach(address, kLong);
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

TEST(TcpRendezvousTest, AddressesThatAreNone) {
  for (const char* address : {"", "localhost", "localhost:", "localhost:0", "localhost:65536", ":29500"}) {
    EXPECT_EQ(TcpRendezvous::Serve(address, kLong).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(TcpRendezvous::Reach(address, kLong).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(TcpRendezvousTest, NobodyComes) {
  const std::string address = FreeAddress();
  EXPECT_EQ(TcpRendezvous::Reach(address, absl::Milliseconds(10)).status().code(),
            absl::StatusCode::kUnavailable);
  const absl::Status status = TcpRendezvous::Serve(address, absl::Milliseconds(10)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(status.message(), HasSubstr("no other worker has come"));
}

}  // namespace
}  // namespace tandem
