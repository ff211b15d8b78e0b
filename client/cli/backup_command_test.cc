#include <string>
#include <vector>

#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BackupCommandTest : public AppFixture {
 protected:
  BackupCommandTest() {
    backup_.set_name("backups/20261122T141530Z");
    backup_.set_path("/state/backups/20261122T141530Z.db");
    backup_.set_size_bytes(2'500'000);
    backup_.mutable_create_time()->set_seconds(1795356930);
    backup_.set_sha256("abc");
  }

  v1::Backup backup_;
};

TEST_F(BackupCommandTest, PrintsThePathAlone) {
  daemon_.create_backup = [this](const v1::CreateBackupRequest&, v1::Backup* backup) {
    *backup = backup_;
    return grpc::Status::OK;
  };
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"backup"}, std::vector<std::string>{"backup", "create"}}) {
    EXPECT_EQ(RunAnew(arguments), 0) << terminal_.err();
    EXPECT_EQ(terminal_.out(), "/state/backups/20261122T141530Z.db\n");
    EXPECT_THAT(terminal_.err(), AllOf(HasSubstr("2.5 MB"), HasSubstr("also copy jobs/, uploads/")));
  }
  EXPECT_EQ(RunAnew({"backup", "-o", "json"}), 0);
  EXPECT_THAT(terminal_.out(), AllOf(HasSubstr("\"backups/20261122T141530Z\""), HasSubstr("\"abc\"")));
}

TEST_F(BackupCommandTest, ListsThem) {
  EXPECT_NE(RunAnew({"backup", "list"}), 0);
  daemon_.list_backups = [](v1::ListBackupsResponse*) { return grpc::Status::OK; };
  EXPECT_EQ(RunAnew({"backup", "list"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("no backups"));
  daemon_.list_backups = [this](v1::ListBackupsResponse* response) {
    *response->add_backups() = backup_;
    response->mutable_backups(0)->set_automatic(true);
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunAnew({"backup", "list"}), 0);
  EXPECT_THAT(terminal_.out(), AllOf(HasSubstr("MADE BY"), HasSubstr("20261122T141530Z"), HasSubstr("2.5 MB"),
                                     HasSubstr("itself"), HasSubstr("/state/backups/")));
}

TEST_F(BackupCommandTest, SaysWhyThereIsNone) {
  daemon_.create_backup = [](const v1::CreateBackupRequest&, v1::Backup*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no backup was made: the disk is full");
  };
  EXPECT_NE(RunAnew({"backup"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("the disk is full"));
  EXPECT_EQ(terminal_.out(), "");
}

}  // namespace
}  // namespace tandem::cli
