#include "server/workers/settlement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "server/jobs/job_machine_fixture.h"
#include "server/workers/spool.h"

namespace tandem {
namespace {

class SettlementTest : public ::testing::Test {
 protected:
  absl::Status Settle(const std::string& id, bool stopped = false) {
    return SettleWorker(&jobs_.machine(), id, 1, spool_, v1::STATE_REASON_WORKER_LOST, "killed by signal 9",
                        [stopped] { return stopped; });
  }
  void WriteSpool(const std::vector<internal::v1::WorkerEvent>& events) {
    absl::StatusOr<std::unique_ptr<SpoolWriter>> writer = SpoolWriter::Create(spool_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const auto& event : events) ASSERT_TRUE((*writer)->Append(event).ok());
    ASSERT_TRUE((*writer)->Sync().ok());
  }

  JobMachineFixture jobs_;
  const TemporaryFolder folder_;
  const std::string spool_ = folder_.path() + "/spool";
};

TEST_F(SettlementTest, TheSpoolTellsHowTheJobEnded) {
  const std::string id = jobs_.RunningJob();
  WriteSpool({Started(1), ProgressAt(2, 10), Finished(3, v1::JOB_STATE_SUCCEEDED)});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Settle(id).ok());
    EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_SUCCEEDED);
    EXPECT_EQ(jobs_.Get(id).progress().step(), 10);
  }
  jobs_.CheckLog(id);
}

TEST_F(SettlementTest, WithoutASpoolTheWorkerIsLost) {
  const std::string id = jobs_.RunningJob();
  ASSERT_TRUE(Settle(id).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(jobs_.Get(id).message().find("killed by signal 9. "), 0) << jobs_.Get(id).message();
  EXPECT_TRUE(Settle("none").ok());
}

TEST_F(SettlementTest, AFileThatIsNoSpoolLosesItsEventsAlone) {
  const std::string id = jobs_.RunningJob();
  std::ofstream(spool_) << "somebody wrote a text over the spool";
  ASSERT_TRUE(Settle(id).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(jobs_.Get(id).reason(), v1::STATE_REASON_WORKER_LOST);
}

TEST_F(SettlementTest, EventsThatHaveNoPlaceLoseTheWorker) {
  const std::string id = jobs_.RunningJob();
  // Events 2 to 6 are missing.
  WriteSpool({Finished(7, v1::JOB_STATE_SUCCEEDED)});
  ASSERT_TRUE(Settle(id).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_FAILED);
  jobs_.CheckLog(id);
}

TEST_F(SettlementTest, ALaterAttemptIsLeftAlone) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Requeue(id, 1).ok());
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 2, {Started(1)}).ok());
  EXPECT_TRUE(Settle(id).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(jobs_.Get(id).attempt(), 2);
}

TEST_F(SettlementTest, ErrorsThatPassAreForTheCallerToRepeat) {
  const std::string id = jobs_.RunningJob();
  EXPECT_TRUE(absl::IsCancelled(Settle(id, /*stopped=*/true)));
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_RUNNING);
  jobs_.store().Close();
  EXPECT_TRUE(absl::IsUnavailable(Settle(id)));
}

}  // namespace
}  // namespace tandem
