#include "client/lib/listener_check.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
constexpr char kTail[] = " 00000000:00000000 00:00000000 00000000  ";

// Fake kernel tables. Port 7447 is 1D17.
class ListenerCheckTest : public ::testing::Test {
 protected:
  ListenerCheckTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-proc-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(root_ + "/proc/net");
  }
  ~ListenerCheckTest() override { std::filesystem::remove_all(root_); }

  void Have(const char* table, const std::string& local, const char* state, uid_t user) {
    const std::string path = root_ + "/proc/net/" + table;
    const bool is_new = !std::filesystem::exists(path);
    std::ofstream(path, std::ios::app) << (is_new ? kHead : "") << "   0: " << local << " 00000000:0000 "
                                       << state << kTail << user << "        0 17 1 0 100 0 0 10 0\n";
  }
  absl::Status Check(const std::string& address) { return CheckListener(address, {0, 1000}, root_); }

  std::string root_;
};

TEST_F(ListenerCheckTest, AStrangerIsToldByItsNumber) {
  Have("tcp", "0100007F:1D17", "0A", 1001);
  const absl::Status refused = Check("127.0.0.1:7447");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr(kStrangerListens));
  EXPECT_THAT(refused.message(), HasSubstr("1001"));
  for (const char* address : {"localhost:7447", "0.0.0.0:7447", "[::]:7447"}) {
    EXPECT_FALSE(Check(address).ok()) << address;
  }
  for (const char* address : {"127.0.0.1:7448", "127.0.0.2:7447", "[::1]:7447"}) {
    EXPECT_TRUE(Check(address).ok()) << address;
  }
}

TEST_F(ListenerCheckTest, WhoeverListensAtAllAddressesListensAtThisOne) {
  Have("tcp", "00000000:1D17", "0A", 1001);
  EXPECT_FALSE(Check("127.0.0.1:7447").ok());
}

TEST_F(ListenerCheckTest, SocketsOfIpv6TakeBoth) {
  Have("tcp6", "0000000000000000FFFF00000100007F:1D17", "0A", 1001);
  Have("tcp6", "00000000000000000000000000000000:1D18", "0A", 1001);
  Have("tcp6", "00000000000000000000000001000000:1D19", "0A", 1001);
  EXPECT_FALSE(Check("127.0.0.1:7447").ok());
  EXPECT_FALSE(Check("127.0.0.1:7448").ok());
  EXPECT_FALSE(Check("[::1]:7449").ok());
  EXPECT_TRUE(Check("127.0.0.1:7449").ok());
  EXPECT_FALSE(Check("localhost:7449").ok());
}

TEST_F(ListenerCheckTest, TheDaemonsUserMayHaveIt) {
  Have("tcp", "0100007F:1D17", "0A", 1000);
  Have("tcp", "0100007F:1D18", "0A", 0);
  // A connection of another user is not a listener.
  Have("tcp", "0100007F:1D17", "01", 1001);
  EXPECT_TRUE(Check("127.0.0.1:7447").ok());
  EXPECT_TRUE(Check("127.0.0.1:7448").ok());
}

TEST_F(ListenerCheckTest, WhatCannotBeKnownIsNotRefused) {
  EXPECT_TRUE(Check("127.0.0.1:7447").ok());
  Have("tcp", "0100007F:1D17", "0A", 1001);
  Have("tcp", "nonsense", "0A", 1001);
  std::ofstream(root_ + "/proc/net/tcp6") << "nonsense\n\n";
  for (const char* address : {"gpu-box:7447", "unix:/run/tandem", "no address", ""}) {
    EXPECT_TRUE(Check(address).ok()) << address;
  }
}

}  // namespace
}  // namespace tandem::client
