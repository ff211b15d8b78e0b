// Tests a database that is missing at the start, or seems to be.

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/recovery_fixture.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using MissingDatabaseTest = RecoveryFixture;

TEST_F(MissingDatabaseTest, OneThatIsMissingIsRestored) {
  {
    const auto store = Open();
    AddJob(*store, "a");
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  for (const bool log_too : {true, false}) {
    std::filesystem::rename(Path(), Path() + ".elsewhere");
    if (!log_too) std::ofstream(Path() + "-wal") << "its log";
    const auto prepared = Prepare("jobs/");
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    ASSERT_TRUE(prepared->has_value());
    EXPECT_EQ((*prepared)->damage, Path() + " is missing");
    EXPECT_TRUE(Open()->GetJob("a").ok());
  }
}

TEST_F(MissingDatabaseTest, OneThatIsMissingIsMadeOnlyWhereNothingRemains) {
  for (const bool is_empty : {false, true}) {
    if (is_empty) std::ofstream(Path()).close();
    const auto prepared = Prepare("jobs/, uploads/");
    EXPECT_EQ(prepared.status().code(), absl::StatusCode::kFailedPrecondition) << prepared.status();
    EXPECT_THAT(prepared.status().message(),
                AllOf(HasSubstr(Path()), HasSubstr(", but jobs/, uploads/ belong to it"),
                      HasSubstr("--restore-backup FILE"), HasSubstr("--begin-anew")));
    EXPECT_EQ(std::filesystem::exists(Path()), is_empty);
    const auto fresh = Prepare();
    ASSERT_TRUE(fresh.ok()) << fresh.status();
    EXPECT_FALSE(fresh->has_value());
  }
}

// Made while the clock was wrong, and older than all others.
TEST_F(MissingDatabaseTest, ABackupOfTheFutureIsTheLastResort) {
  const auto store = Open();
  AddJob(*store, "a");
  clock_.Advance(absl::Hours(24 * 365));
  const auto future = backups_.Create(true);
  ASSERT_TRUE(future.ok()) << future.status();
  clock_.Advance(-absl::Hours(24 * 364));
  AddJob(*store, "b");
  const auto newest = backups_.Create(true);
  ASSERT_TRUE(newest.ok()) << newest.status();
  std::filesystem::rename(Path(), Path() + ".elsewhere");
  auto prepared = Prepare();
  ASSERT_TRUE(prepared.ok() && prepared->has_value()) << prepared.status();
  EXPECT_EQ((*prepared)->backup_path, newest->path());
  std::filesystem::remove(newest->path());
  std::filesystem::remove(Path());
  prepared = Prepare();
  ASSERT_TRUE(prepared.ok() && prepared->has_value()) << prepared.status();
  EXPECT_EQ((*prepared)->backup_path, future->path());
}

// The link's disk may be mounted later.
TEST_F(MissingDatabaseTest, ALinkThatLeadsNowhereIsNotMissing) {
  {
    const auto store = Open();
    AddJob(*store, "a");
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  std::filesystem::rename(Path(), Path() + ".elsewhere");
  std::filesystem::create_symlink(folder_.path() + "/disk/tandem.db", Path());
  const auto prepared = Prepare("jobs/");
  EXPECT_FALSE(prepared.ok());
  EXPECT_THAT(std::filesystem::read_symlink(Path()).string(), EndsWith("/disk/tandem.db"));
}

// The system cannot tell if the file exists.
TEST_F(MissingDatabaseTest, OneThatCannotBeLookedAtIsNotMissing) {
  std::string path = folder_.path() + "/file/tandem.db";
  std::ofstream(folder_.path() + "/file") << "no folder";
  const auto prepared = PrepareDatabase(
      path, &backups_, [](const std::string&) { return 0; }, "", &clock_);
  EXPECT_FALSE(prepared.ok());
}

}  // namespace
}  // namespace tandem
