#include "server/rpc/job_drain.h"

#include <filesystem>

#include "SQLiteCpp/SQLiteCpp.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

TEST(JobDrainTest, CancelsAllAndTellsHowMany) {
  JobMachineFixture jobs;
  JobDrain drain(&jobs.machine());
  jobs.machine().AddObserver(&drain);
  jobs.NewJob();
  jobs.NewJob();
  Awaited<absl::StatusOr<int>> drained;
  drain.CancelAll(drained.Done());
  const absl::StatusOr<int> cancelled = drained.Get();
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(*cancelled, 2);
  EXPECT_TRUE(drain.is_drained());
  jobs.store().Close();
}

TEST(JobDrainTest, DoesNotWaitForAJobThatSomeoneElseHadJustCancelled) {
  JobMachineFixture jobs;
  JobDrain drain(&jobs.machine());
  jobs.machine().AddObserver(&drain);
  const std::string running = jobs.NewJob();
  ASSERT_TRUE(jobs.Schedule(running).ok());
  Awaited<absl::StatusOr<int>> drained;
  drain.CancelAll(drained.Done());

  // For example, if the drain learns of a job only after its end.
  const v1::Job queued = *jobs.machine().Get(jobs.NewJob());
  drain.OnMoved(*jobs.Cancel(JobId(queued.name())));
  drain.OnMoved(queued);

  ASSERT_TRUE(jobs.WorkerLost(running, 1).ok());
  const absl::StatusOr<int> cancelled = drained.Get();
  EXPECT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_TRUE(drain.is_drained());
  jobs.store().Close();
}

TEST(JobDrainTest, FailsIfTheStoreCannotCancelAJob) {
  JobMachineFixture jobs;
  JobDrain drain(&jobs.machine());
  jobs.machine().AddObserver(&drain);
  const std::string id = jobs.NewJob();
  SQLite::Database database(
      std::filesystem::path(jobs.Get(id).folder()).parent_path().parent_path() / "tandem.db",
      SQLite::OPEN_READWRITE, /*aBusyTimeoutMs=*/10'000);
  database.exec("CREATE TRIGGER trouble BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'trouble'); END");
  Awaited<absl::StatusOr<int>> failed;
  drain.CancelAll(failed.Done());
  const absl::Status status = failed.Get().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(),
              testing::HasSubstr("cannot shut down: jobs/" + id + " cannot be cancelled: "));
  EXPECT_FALSE(drain.is_drained());
  database.exec("DROP TRIGGER trouble");
  // The drain has ended, so later jobs stay.
  EXPECT_EQ(jobs.Get(jobs.NewJob()).state(), v1::JOB_STATE_QUEUED);
  Awaited<absl::StatusOr<int>> drained;
  drain.CancelAll(drained.Done());
  const absl::StatusOr<int> cancelled = drained.Get();
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(*cancelled, 2);
  EXPECT_TRUE(drain.is_drained());
  jobs.store().Close();
}

TEST(JobDrainTest, AbortAnswersWhatWaits) {
  JobMachineFixture jobs;
  JobDrain drain(&jobs.machine());
  jobs.machine().AddObserver(&drain);
  ASSERT_TRUE(jobs.Schedule(jobs.NewJob()).ok());
  Awaited<absl::StatusOr<int>> drained;
  drain.CancelAll(drained.Done());
  drain.Abort(absl::UnavailableError("going"));
  EXPECT_EQ(drained.Get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(drain.is_drained());
  jobs.store().Close();
}

}  // namespace
}  // namespace tandem
