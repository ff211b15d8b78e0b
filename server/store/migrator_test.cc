#include "server/store/migrator.h"

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/connection.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MigratorTest : public testing::Test {
 protected:
  std::unique_ptr<Connection> Open() {
    auto connection = Connection::Open(folder_.path() + "/test.db", Connection::Access::kMake);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return *std::move(connection);
  }

  TemporaryFolder folder_;
};

TEST_F(MigratorTest, FilesAreNumberedFromOneWithoutGaps) {
  int version = 0;
  for (const Migration& migration : Migrations()) {
    int number;
    ASSERT_TRUE(absl::SimpleAtoi(std::string(migration.name).substr(0, 4), &number)) << migration.name;
    EXPECT_EQ(number, ++version) << migration.name;
  }
  EXPECT_GE(version, 1);
}

TEST_F(MigratorTest, BringsANewDatabaseToTheNewestVersionOnce) {
  const auto connection = Open();
  ASSERT_TRUE(Migrate(connection.get(), Migrations()).ok());
  EXPECT_EQ(connection->QueryInt("PRAGMA user_version").value(), static_cast<int64_t>(Migrations().size()));
  ASSERT_TRUE(Migrate(connection.get(), Migrations()).ok());
  EXPECT_EQ(connection->QueryInt("SELECT count(*) FROM jobs").value(), 0);
}

TEST_F(MigratorTest, GoesOnFromTheVersionThatIsThere) {
  const auto connection = Open();
  const Migration first[] = {{"0001_a.sql", "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (7);"}};
  const Migration both[] = {first[0],
                            {"0002_b.sql", "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 8;"}};
  ASSERT_TRUE(Migrate(connection.get(), first).ok());
  ASSERT_TRUE(Migrate(connection.get(), both).ok());
  EXPECT_EQ(connection->QueryInt("SELECT x + y FROM a").value(), 15);
  EXPECT_EQ(connection->QueryInt("PRAGMA user_version").value(), 2);
}

TEST_F(MigratorTest, RefusesANewerVersion) {
  const auto connection = Open();
  ASSERT_TRUE(connection->Execute("PRAGMA user_version = 900").ok());
  const absl::Status status = Migrate(connection.get(), Migrations());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("test.db"), HasSubstr("newer"), HasSubstr("900")));
  EXPECT_FALSE(connection->InTransaction());
}

TEST_F(MigratorTest, AFailureLeavesNothing) {
  const auto connection = Open();
  const Migration bad[] = {{"0001_good.sql", "CREATE TABLE a (x INTEGER);"},
                           {"0002_bad.sql", "CREATE NONSENSE;"}};
  const absl::Status status = Migrate(connection.get(), bad);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0002_bad.sql"));
  EXPECT_EQ(connection->QueryInt("PRAGMA user_version").value(), 0);
  EXPECT_EQ(connection->QueryInt("SELECT count(*) FROM sqlite_master").value(), 0);
}

TEST_F(MigratorTest, SaysThatAFileIsNoDatabase) {
  const std::string path = folder_.path() + "/test.db";
  std::ofstream(path) << std::string(5000, 'x');
  const auto connection = Connection::Open(path, Connection::Access::kReadWrite);
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(connection.status().message()), HasSubstr(path));
}

TEST_F(MigratorTest, ReadersCannotWrite) {
  ASSERT_TRUE(Migrate(Open().get(), Migrations()).ok());
  const auto reader = Connection::Open(folder_.path() + "/test.db", Connection::Access::kReadOnly);
  ASSERT_TRUE(reader.ok());
  EXPECT_FALSE((*reader)->Execute("DELETE FROM jobs").ok());
}

}  // namespace
}  // namespace tandem
