#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/time/clock.h"
#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// Runs the command until its dashboard serves. Programs come from the test's own folder.
class DashboardCommandTest : public AppFixture {
 protected:
  DashboardCommandTest() {
    setenv("PATH", (folder_ + "/bin").c_str(), 1);
    terminal_.interrupt = [](const std::string& out) { return out.find("Ctrl-C ends") != std::string::npos; };
  }
  ~DashboardCommandTest() override { setenv("PATH", path_.c_str(), 1); }

  const std::string path_ = getenv("PATH") == nullptr ? "" : getenv("PATH");
};

TEST_F(DashboardCommandTest, SaysWhereItIsUntilCtrlC) {
  EXPECT_EQ(Run({"dashboard", "--listen", "localhost:0", "--no-open"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), MatchesRegex("The dashboard is at http://127.0.0.1:[0-9]+/.*\n"
                                            "Open this address in a browser; its key works once.\n"
                                            "Ctrl-C ends the dashboard. Jobs continue.\n"));
  EXPECT_EQ(terminal_.err(), "");
}

TEST_F(DashboardCommandTest, OpensTheBrowserThatIsThere) {
  // Without a browser the user opens the address.
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("Open this address in a browser"));
  const std::string program = Write("bin/xdg-open", "#!/bin/sh\necho \"$1\" > " + folder_ + "/opened\n");
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  terminal_ = FakeTerminal();
  terminal_.environment["TANDEM_ADDRESS"] = daemon_.address();
  terminal_.environment["XDG_STATE_HOME"] = folder_;
  terminal_.interrupt = [](const std::string& out) { return !out.empty(); };
  EXPECT_EQ(Run({"dashboard", "--listen", "[127.0.0.1]:0"}), 0) << terminal_.err();
  std::string opened;
  for (int i = 0; i < 600 && opened.empty(); ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    opened = Read(folder_ + "/opened");
  }
  EXPECT_THAT(opened, HasSubstr("http://127.0.0.1:"));
  EXPECT_THAT(terminal_.out(), HasSubstr("The dashboard is at " + opened));
  EXPECT_THAT(terminal_.out(), Not(HasSubstr("Open this address")));
}

// Returns an address of this machine that other machines may reach. "" if it has none.
std::string OutsideAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool is_outside = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
                            (one->ifa_flags & IFF_LOOPBACK) == 0 && (one->ifa_flags & IFF_UP) != 0;
    char text[INET_ADDRSTRLEN];
    if (is_outside) {
      const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      found = inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    }
  }
  freeifaddrs(all);
  return found;
}

TEST_F(DashboardCommandTest, WarnsIfOtherMachinesReachIt) {
  const std::string address = OutsideAddress();
  if (address.empty()) GTEST_SKIP() << "this machine has only loopback addresses";
  EXPECT_EQ(Run({"dashboard", "--listen", address + ":0", "--no-open"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.err(), HasSubstr("warning: other machines can reach the dashboard"));
}

TEST_F(DashboardCommandTest, AWrongAddressOrDaemonEndsIt) {
  for (const char* const listen :
       {"7449", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1", "0.0.0.0:0", "[::]:0", ":0"}) {
    EXPECT_EQ(Run({"dashboard", "--listen", listen}), 2) << listen;
    EXPECT_THAT(terminal_.err(), HasSubstr("cannot serve on \"" + std::string(listen) + "\""));
  }
  EXPECT_NE(Run({"dashboard", "--listen", daemon_.address(), "--no-open"}), 0);
  daemon_.get_daemon = [](grpc::ServerContext*, v1::Daemon*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "cannot read its version");
  };
  EXPECT_NE(Run({"dashboard", "--listen", "127.0.0.1:0", "--no-open"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot read its version"));
  EXPECT_EQ(terminal_.out(), "");
}

TEST_F(DashboardCommandTest, ANamedPortIsNotReplaced) {
  // If another program has the default port already, the test needs no socket of its own.
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(7449);
  if (bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) listen(taken, 1);
  EXPECT_NE(Run({"dashboard", "--listen", "127.0.0.1:7449", "--no-open"}), 0);
  EXPECT_EQ(terminal_.out(), "");
  EXPECT_EQ(Run({"dashboard", "--no-open"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("The dashboard is at http://127.0.0.1:"));
  close(taken);
}

TEST_F(DashboardCommandTest, EndsWhenItsOutputIsLost) {
  terminal_.interrupt = [](const std::string&) { return false; };
  terminal_.output_status = absl::UnavailableError("broken pipe");
  EXPECT_EQ(Run({"dashboard", "--listen", "127.0.0.1:0", "--no-open"}), 5);
}

}  // namespace
}  // namespace tandem::cli
