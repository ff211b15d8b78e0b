#include "server/clusters/slurm/fake_slurm_client.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

SlurmRequest Tagged(const std::string& comment) {
  SlurmRequest request;
  request.comment = comment;
  return request;
}

TEST(FakeSlurmClientTest, JobsFollowTheTest) {
  FakeSlurmClient slurm;
  EXPECT_EQ(*slurm.Submit(Tagged("tandem:a:1")), "1");
  EXPECT_EQ(*slurm.Submit(Tagged("tandem:b:1")), "2");
  slurm.SetState("1", SlurmState::kRunning);
  EXPECT_EQ((*slurm.Find("tandem:a:1"))->state, SlurmState::kRunning);
  EXPECT_EQ((*slurm.Find("tandem:b:1"))->state, SlurmState::kPending);
  EXPECT_FALSE(slurm.Find("tandem:c:1")->has_value());
  slurm.Forget("1");
  EXPECT_THAT(*slurm.Poll(), SizeIs(1));
  SlurmJob foreign;
  foreign.id = "3";
  foreign.comment = "foreign";
  slurm.Add(foreign);
  EXPECT_THAT(*slurm.Poll(), SizeIs(1));
  EXPECT_EQ(slurm.polls(), 2);
}

TEST(FakeSlurmClientTest, CancelEndsAJobAndASignalDoesNot) {
  FakeSlurmClient slurm;
  EXPECT_TRUE(slurm.Submit(Tagged("tandem:a:1")).ok());
  EXPECT_TRUE(slurm.Cancel("1", true).ok());
  EXPECT_EQ((*slurm.Find("tandem:a:1"))->state, SlurmState::kPending);
  EXPECT_TRUE(slurm.Cancel("1", false).ok());
  EXPECT_EQ((*slurm.Find("tandem:a:1"))->state, SlurmState::kCancelled);
  EXPECT_THAT(slurm.cancelled(),
              ElementsAre(FakeSlurmClient::Cancelled{"1", true}, FakeSlurmClient::Cancelled{"1", false}));
}

TEST(FakeSlurmClientTest, FailuresBefallOneCallEach) {
  FakeSlurmClient slurm;
  slurm.FailNext(FakeSlurmClient::Call::kPoll, absl::UnavailableError("down"));
  EXPECT_TRUE(slurm.Submit(Tagged("tandem:a:1")).ok());
  EXPECT_TRUE(absl::IsUnavailable(slurm.Poll().status()));
  EXPECT_THAT(*slurm.Poll(), SizeIs(1));
}

TEST(FakeSlurmClientTest, ALostAnswerLeavesAJob) {
  FakeSlurmClient slurm;
  slurm.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(slurm.Submit(Tagged("tandem:a:1")).status()));
  EXPECT_TRUE(slurm.Find("tandem:a:1")->has_value());
  EXPECT_THAT(slurm.submitted(), SizeIs(1));
}

}  // namespace
}  // namespace tandem
