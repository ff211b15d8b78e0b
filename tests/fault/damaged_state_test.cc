// A daemon whose database is damaged while jobs train. The daemon must put the database aside, restore the
// newest backup and report the loss. Folders must stay, and jobs must continue. Also tests backups by the
// command line, and a manual restoration.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Minutes(3);

class DamagedStateTest : public DaemonFixture {
 protected:
  // The path of a new backup.
  std::string Backup() {
    const CliResult made = cli_.Run({"backup"});
    EXPECT_EQ(made.exit_code, 0) << made;
    return std::string(absl::StripSuffix(made.out, "\n"));
  }
  // Overwrites a page in the middle of the database.
  void Damage() {
    const auto pages = std::filesystem::file_size(daemon_.DatabasePath()) / 4096;
    std::fstream file(daemon_.DatabasePath(), std::ios::binary | std::ios::in | std::ios::out);
    for (const uint64_t page : {uint64_t{1}, pages / 2}) {
      file.seekp(static_cast<int64_t>(page) * 4096);
      file << std::string(4096, 'x');
    }
  }
  std::vector<std::string> Asides() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(daemon_.state_folder())) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("tandem.db.damaged-", 0) == 0 && !name.ends_with("-wal")) found.push_back(name);
    }
    return found;
  }

  // Long enough for any machine: it is cancelled in the end.
  static v1::JobSpec EndlessJob() {
    v1::JobSpec spec = LongJob(1'000'000);
    spec.mutable_checkpoints()->set_every_steps(50);
    spec.set_max_restarts(10);
    return spec;
  }
  // Waits until the job, in at least its `attempt`th attempt, has reported a step after `step`.
  void WaitForMore(Api& api, const std::string& name, int64_t step, int32_t attempt = 1) {
    v1::Job job;
    const auto there = [&] {
      job = api.Get(name);
      return IsTerminal(job.state()) || (job.attempt() >= attempt && job.progress().step() > step);
    };
    ASSERT_TRUE(WaitUntil(there, kPatience)) << job.DebugString() << daemon_.Log();
    ASSERT_FALSE(IsTerminal(job.state())) << job.DebugString() << daemon_.Log();
  }
  void CancelAndWait(Api& api, const std::string& job) {
    api.Cancel(job);
    EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_CANCELLED, kPatience).state(), v1::JOB_STATE_CANCELLED);
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Workers().empty(); }, kPatience));
  }
};

TEST_F(DamagedStateTest, TheNewestBackupTakesItsPlaceAndJobsGoOn) {
  Api api(daemon_);
  const std::string known = api.CreateAndAwait(EndlessJob(), v1::JOB_STATE_RUNNING);
  ASSERT_FALSE(HasFailure());
  const std::string backup = Backup();
  ASSERT_THAT(backup, EndsWith(".db"));
  EXPECT_TRUE(std::filesystem::exists(backup + ".sha256"));
  EXPECT_THAT(cli_.Run({"backup", "list"}).out, HasSubstr(backup));
  // After the backup: a job that the restored database cannot know.
  const std::string later = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());

  const int64_t before = api.Get(known).progress().step();
  // This writes the log into the database file.
  ASSERT_EQ(daemon_.Terminate(), 0);
  ASSERT_EQ(daemon_.Workers().size(), 1);
  Damage();
  const absl::Status started = daemon_.Start();
  ASSERT_TRUE(started.ok()) << started << daemon_.Log();
  EXPECT_EQ(Asides().size(), 1);
  EXPECT_THAT(daemon_.Log(), AllOf(HasSubstr("THE DATABASE WAS DAMAGED AND IS RESTORED"), HasSubstr(backup),
                                   HasSubstr(later.substr(5))));
  EXPECT_TRUE(std::filesystem::exists(daemon_.JobFolder(later) + "/model.safetensors"));
  // The known job trains on, beyond the events that its worker had to send again.
  ASSERT_NO_FATAL_FAILURE(WaitForMore(api, known, before));
  ASSERT_NO_FATAL_FAILURE(WaitForMore(api, known, api.Get(known).progress().step() + 100));
  CancelAndWait(api, known);
  // New work, as ever.
  api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  EXPECT_TRUE(std::filesystem::exists(daemon_.JobFolder(later) + "/model.safetensors"));
}

// A worker that was started after the backup has a number that the restored database has not given yet: the
// next one must be another.
TEST_F(DamagedStateTest, AttemptsAreNotUsedAgain) {
  Api api(daemon_);
  ASSERT_EQ(cli_.Run({"devices", "drain", "cpu:0"}).exit_code, 0);
  ASSERT_EQ(cli_.Run({"devices", "drain", "cpu:1"}).exit_code, 0);
  const std::string job = api.Create(EndlessJob()).name();
  Backup();
  ASSERT_EQ(cli_.Run({"devices", "resume", "cpu:0"}).exit_code, 0);
  ASSERT_EQ(api.WaitFor(job, v1::JOB_STATE_RUNNING).state(), v1::JOB_STATE_RUNNING);
  ASSERT_EQ(daemon_.Terminate(), 0);
  ASSERT_EQ(daemon_.Workers().size(), 1);
  Damage();
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_GE(api.Get(job).attempt(), 1);
  // The backup had the devices drained.
  ASSERT_EQ(cli_.Run({"devices", "resume", "cpu:0"}).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(WaitForMore(api, job, 0, /*attempt=*/2));
  CancelAndWait(api, job);
}

TEST_F(DamagedStateTest, WithoutABackupItDoesNotStartAndChangesNothing) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(daemon_.Terminate(), 0);
  Damage();
  const std::string before = ReadFile(daemon_.DatabasePath());
  ASSERT_FALSE(daemon_.Start().ok());
  EXPECT_THAT(daemon_.Log(),
              AllOf(HasSubstr("tandem.db"), HasSubstr("no undamaged backup"), HasSubstr("--restore-backup")));
  EXPECT_EQ(ReadFile(daemon_.DatabasePath()), before);
  EXPECT_THAT(Asides(), IsEmpty());
}

// Someone removes the database with `rm`. Everything acknowledged must be there again.
TEST_F(DamagedStateTest, ADatabaseThatIsRemovedUnderTheDaemonIsSavedAndRestored) {
  Api api(daemon_);
  const std::string early = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  Backup();
  const std::string late = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  const std::string endless = api.CreateAndAwait(EndlessJob(), v1::JOB_STATE_RUNNING);
  ASSERT_FALSE(HasFailure());
  for (const char* side : {"", "-wal", "-shm"}) std::filesystem::remove(daemon_.DatabasePath() + side);
  EXPECT_EQ(daemon_.Wait(kPatience), 1) << daemon_.Log();
  EXPECT_THAT(daemon_.Log(),
              AllOf(HasSubstr("was removed while the daemon used it"), HasSubstr("is saved as")));
  EXPECT_FALSE(std::filesystem::exists(daemon_.DatabasePath()));
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_THAT(daemon_.Log(), HasSubstr("THE DATABASE WAS MISSING AND IS RESTORED"));
  for (const std::string& job : {early, late}) EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_NO_FATAL_FAILURE(WaitForMore(api, endless, api.Get(endless).progress().step()));
  CancelAndWait(api, endless);
}

TEST_F(DamagedStateTest, WithoutADatabaseAndABackupItBeginsAnewOnlyWhenTold) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(daemon_.Terminate(), 0);
  for (const char* side : {"", "-wal", "-shm"}) std::filesystem::remove(daemon_.DatabasePath() + side);
  ASSERT_FALSE(daemon_.Start().ok());
  EXPECT_THAT(daemon_.Log(),
              AllOf(HasSubstr("tandem.db is missing"), HasSubstr("jobs/"), HasSubstr("--begin-anew")));
  const DaemonRun anew = RunDaemon(scratch_, {"--state-folder", daemon_.state_folder(), "--begin-anew"});
  EXPECT_EQ(anew.exit_code, 0) << anew.output;
  EXPECT_THAT(anew.output, HasSubstr("/before-"));
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_THAT(api.List(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(daemon_.JobFolder(job)));
}

// A backup reads the whole database, so it finds damage that no other reader finds.
TEST_F(DamagedStateTest, WhatABackupMeetsEndsTheDaemonAndIsMended) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  Backup();
  // So that nothing of the database is in its log.
  ASSERT_EQ(daemon_.Terminate(), 0);
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  Damage();
  EXPECT_NE(cli_.Run({"backup"}).exit_code, 0);
  EXPECT_EQ(daemon_.Wait(kPatience), 1) << daemon_.Log();
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_EQ(Asides().size(), 1);
  EXPECT_THAT(daemon_.Log(), HasSubstr("THE DATABASE WAS DAMAGED AND IS RESTORED"));
  EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(DamagedStateTest, ABackupIsBroughtBackByHand) {
  Api api(daemon_);
  const std::string first = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  const std::string backup = Backup();
  const std::string second = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  ASSERT_FALSE(HasFailure());
  const std::string houses = scratch_.Write("houses.csv", "size,price\n1,2\n2,3\n3,4\n4,5\n");
  const std::vector<std::string> add = {
      "datasets", "add", "houses", houses, "--set", "csv.target_columns=price", "--upload"};
  ASSERT_EQ(cli_.Run(add).exit_code, 0);

  const auto restore = [&](const std::string& what) {
    return RunDaemon(scratch_, {"--state-folder", daemon_.state_folder(), "--restore-backup", what});
  };
  // Not under a daemon.
  auto [refused, why] = restore(backup);
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(why, HasSubstr("another tandemd"));
  ASSERT_EQ(daemon_.Terminate(), 0);
  auto [missing, what] = restore("19990101T000000Z");
  EXPECT_EQ(missing, 1);
  EXPECT_THAT(what, HasSubstr("no such backup"));
  const std::string id = std::filesystem::path(backup).stem().string();
  auto [done, said] = restore(id);
  EXPECT_EQ(done, 0) << said;
  EXPECT_THAT(said, AllOf(HasSubstr(backup), HasSubstr("tandem.db.damaged-")));
  // Makes the upload's files old, as if the restoration were long ago.
  std::string upload;
  for (const auto& folder : std::filesystem::directory_iterator(daemon_.state_folder() + "/uploads")) {
    upload = folder.path().filename().string();
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      std::filesystem::last_write_time(file.path(), file.last_write_time() - std::chrono::hours(24 * 30));
    }
  }
  ASSERT_NE(upload, "");
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_EQ(api.Get(first).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(api.List().size(), 1);
  EXPECT_TRUE(std::filesystem::exists(daemon_.JobFolder(second)));
  // The daemon reports missing data once, and keeps this data until someone has looked at it.
  EXPECT_THAT(daemon_.Log(), AllOf(HasSubstr("THE DATABASE WAS RESTORED from " + backup),
                                   HasSubstr(second.substr(5)), HasSubstr("uploads/" + upload)));
  const size_t length = daemon_.Log().size();
  ASSERT_EQ(daemon_.Terminate(), 0);
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_THAT(daemon_.Log().substr(length), Not(HasSubstr("RESTORED")));
  EXPECT_THAT(cli_.Run({"datasets", "uploads"}).out, AllOf(HasSubstr(upload), HasSubstr("ever")));
  const CliResult added = cli_.Run(add);
  EXPECT_EQ(added.exit_code, 0) << added;
  EXPECT_THAT(cli_.Run({"datasets", "uploads"}).out, HasSubstr("no unfinished uploads"));
  EXPECT_TRUE(std::filesystem::exists(daemon_.state_folder() + "/uploads/" + upload + "/files"));
}

}  // namespace
}  // namespace tandem::testing
