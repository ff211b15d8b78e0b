#include "server/daemon/restoration.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/store/restoration_mark.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class RestorationTest : public testing::Test {
 protected:
  RestorationTest() {
    Restoration restoration;
    restoration.backup_path = "/backup";
    restoration.time = jobs_.clock().Now();
    EXPECT_TRUE(WriteRestorationMark(database_ + ".restoration", restoration).ok());
  }

  Restoration Mark() {
    const auto mark = LastRestoration(database_);
    EXPECT_TRUE(mark.ok() && mark->has_value()) << mark.status();
    return mark.ok() && mark->has_value() ? **mark : Restoration();
  }
  absl::Status Tell() {
    return TellOfRestoration(database_, Mark(), folder_.path() + "/jobs", {}, &jobs_.store(),
                             &jobs_.machine());
  }
  int Notices(const std::string& id) {
    int count = 0;
    for (const v1::JobEvent& event : jobs_.Log(id)) {
      if (event.notice().message().find("database was restored on 2023-11-14") != std::string::npos) ++count;
    }
    return count;
  }

  TemporaryFolder folder_;
  const std::string database_ = folder_.path() + "/tandem.db";
  JobMachineFixture jobs_;
};

TEST_F(RestorationTest, JobsThatHaveNotEndedAreToldOnce) {
  const std::string waits = jobs_.NewJob("waits");
  const std::string ended = jobs_.NewJob("ended");
  ASSERT_TRUE(jobs_.Cancel(ended).ok());
  ASSERT_TRUE(Tell().ok());
  // After the mark, the notices are durable.
  EXPECT_TRUE(Mark().told);
  EXPECT_EQ(Notices(waits), 1);
  EXPECT_EQ(Notices(ended), 0);
  ASSERT_TRUE(Tell().ok());
  EXPECT_EQ(Notices(waits), 1);
}

TEST_F(RestorationTest, ABackupThatIsNotThereHasItsReason) {
  DaemonOptions options;
  options.state_folder = folder_.path() + "/state";
  options.restore_backup = "19990101T000000Z";
  EXPECT_THAT(std::string(RestoreAsAsked(options).status().message()),
              HasSubstr("there is no such file, and there is no such backup in " +
                        std::filesystem::path(options.state_folder).lexically_normal().string()));
  // A file that cannot be looked up, as in a folder of root.
  options.restore_backup = folder_.path() + "/loop/x.db";
  std::filesystem::create_symlink(folder_.path() + "/loop", folder_.path() + "/loop");
  EXPECT_THAT(std::string(RestoreAsAsked(options).status().message()), HasSubstr("cannot read the file: "));
}

// The disk is full, or the daemon dies, before the notices are in the logs.
TEST_F(RestorationTest, WhatCouldNotBeToldIsToldByTheNext) {
  const std::string id = jobs_.NewJob("waits");
  jobs_.NewJob("waits, too");
  // The store can be read but not written.
  jobs_.store().Close();
  // One error for all jobs.
  EXPECT_THAT(Tell().message(), testing::HasSubstr("cannot add the restoration's notice to 2"));
  EXPECT_FALSE(Mark().told);
  jobs_.Reopen();
  EXPECT_EQ(Notices(id), 0);
  ASSERT_TRUE(Tell().ok());
  EXPECT_TRUE(Mark().told);
  EXPECT_EQ(Notices(id), 1);
}

// The daemon dies after some notices and before the mark, or runs on although one notice failed.
TEST_F(RestorationTest, NobodyIsToldTwice) {
  const std::string first = jobs_.NewJob("first");
  ASSERT_TRUE(Tell().ok());
  ASSERT_TRUE(jobs_.Schedule(first).ok());
  std::vector<internal::v1::WorkerEvent> events = {Started(1)};
  for (int i = 2; i < 2500; ++i) events.push_back(ProgressAt(i, i));
  ASSERT_TRUE(jobs_.Apply(first, 1, std::move(events)).ok());
  ASSERT_GT(jobs_.Log(first).size(), 2000);
  const std::string second = jobs_.NewJob("second");
  Restoration restoration = Mark();
  restoration.told = false;
  ASSERT_TRUE(WriteRestorationMark(database_ + ".restoration", restoration).ok());
  jobs_.Reopen();
  ASSERT_TRUE(Tell().ok());
  EXPECT_EQ(Notices(first), 1);
  EXPECT_EQ(Notices(second), 1);
  // Another restoration gets its own notice.
  restoration.time += absl::Hours(1);
  ASSERT_TRUE(WriteRestorationMark(database_ + ".restoration", restoration).ok());
  ASSERT_TRUE(Tell().ok());
  EXPECT_EQ(Notices(first), 2);
}

// The mark was damaged while the daemon ran.
TEST_F(RestorationTest, AMarkThatCannotBeReadIsNotWrittenOver) {
  const Restoration restoration = Mark();
  std::filesystem::remove(database_ + ".restoration");
  std::filesystem::create_directory(database_ + ".restoration");
  EXPECT_FALSE(
      TellOfRestoration(database_, restoration, folder_.path(), {}, &jobs_.store(), &jobs_.machine()).ok());
  EXPECT_TRUE(std::filesystem::is_directory(database_ + ".restoration"));
}

}  // namespace
}  // namespace tandem
