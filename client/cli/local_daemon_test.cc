// Tests that the command finds this machine's daemon by its state folder, and keeps the token from other
// users.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/app_fixture.h"
#include "client/lib/stranger.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LocalDaemonTest : public AppFixture {
 protected:
  LocalDaemonTest() {
    terminal_.environment = {{"TANDEM_STATE", folder_}};
    daemon_.token = "secret";
    daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse*) { return grpc::Status::OK; };
    Write("token", "secret\n");
  }
};

TEST_F(LocalDaemonTest, OneThatListensAtAllAddressesIsReachedOnLoopback) {
  Write("address", absl::StrCat("0.0.0.0:", daemon_.port(), "\n"));
  EXPECT_EQ(Run({"list"}), 0) << terminal_.err();
  Write("address", absl::StrCat("0.0.0.0:", daemon_.port(), "\n"));
  daemon_.token = "another";
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr(absl::StrCat("the daemon at 127.0.0.1:", daemon_.port())));
}

TEST_F(LocalDaemonTest, AFolderWithoutADaemonIsNotTheDefaultAddress) {
  EXPECT_EQ(Run({"list"}), 4);
  EXPECT_THAT(terminal_.err(), HasSubstr("no daemon runs on the state folder " + folder_ + ": "));
  EXPECT_THAT(terminal_.err(), HasSubstr("`tandemd --state-folder " + folder_ + "`"));
  EXPECT_EQ(Run({"list", "--state-folder", folder_ + "/no"}), 4);
  EXPECT_THAT(terminal_.err(), HasSubstr(folder_ + "/no: the folder does not exist\n"));
  EXPECT_THAT(terminal_.err(), Not(HasSubstr("7447")));
  EXPECT_EQ(Run({"doctor"}), 1);
  EXPECT_THAT(terminal_.out(), HasSubstr("no daemon runs on the state folder"));
  // The command asks a daemon whose address is given.
  EXPECT_EQ(Run({"list", "--address", daemon_.address()}), 0) << terminal_.err();
}

// As if the file were another user's and not readable.
TEST_F(LocalDaemonTest, AnAddressThatCannotBeReadIsNotTheDefaultOne) {
  std::filesystem::create_directory(folder_ + "/address");
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_EQ(terminal_.err(),
            "tandem: cannot find the daemon's address: cannot read " + folder_ +
                "/address: Is a directory; name it with --address HOST:PORT (or TANDEM_ADDRESS)\n");
  EXPECT_EQ(Run({"list", "--address", daemon_.address()}), 0) << terminal_.err();
}

// Fixes are below their problem, in all their lines.
TEST_F(LocalDaemonTest, WithoutATokenTheDoctorSaysWhatMendsIt) {
  Write("address", daemon_.address() + "\n");
  std::filesystem::remove(folder_ + "/token");
  EXPECT_EQ(Run({"doctor"}), 1);
  EXPECT_THAT(terminal_.out(), HasSubstr("\n         If the token's file was removed"));
  EXPECT_THAT(terminal_.out(), HasSubstr("\n         The daemon's token is the file"));
  Write("token", "another\n");
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it may be another daemon's token, or revoked"));
}

TEST_F(LocalDaemonTest, ItsTokenIsNotForWhoeverTookItsPort) {
  if (!client::Stranger::CanBe()) GTEST_SKIP() << "only root can listen as another user";
  client::Stranger stranger;
  const std::string address = absl::StrCat("127.0.0.1:", stranger.port());
  Write("address", address + "\n");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"list"}, {"doctor"}, {"watch", "--reconnect-timeout", "0.2"}, {"list", "--address", address}}) {
    EXPECT_NE(Run(command), 0);
    EXPECT_EQ(stranger.Received(), "") << command.front();
  }
  EXPECT_EQ(Run({"list"}), 4);
  EXPECT_THAT(terminal_.err(),
              HasSubstr(absl::StrCat("no daemon answers at ", address,
                                     ": cannot send the token: another user of this machine listens there "
                                     "(number 65534)\nThe daemon has probably stopped")));
  // A token file that the user names is sent to any listener.
  EXPECT_EQ(Run({"list", "--token-file", folder_ + "/token", "--timeout", "0.5"}), 4);
  EXPECT_NE(stranger.Received(), "");
}

}  // namespace
}  // namespace tandem::cli
