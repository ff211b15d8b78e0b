#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobMachineSweepsTest : public testing::Test {
 protected:
  absl::StatusOr<StoredSweep> Create(int jobs, const std::string& request_id = "", int max_queued_jobs = 0) {
    JobMachine::NewSweep sweep;
    sweep.sweep.set_display_name("search");
    sweep.sweep.set_max_running(2);
    sweep.submitted.set_display_name(absl::StrCat("search of ", jobs));
    sweep.request_id = request_id;
    sweep.user = "ann";
    sweep.max_queued_jobs = max_queued_jobs;
    for (int i = 0; i < jobs; ++i) {
      v1::JobSpec spec;
      spec.set_name("small");
      spec.mutable_training()->set_epochs(i + 1);
      JobMachine::NewSweep::Part& part = sweep.jobs.emplace_back();
      part.spec = spec.SerializeAsString();
      v1::SweepValue& value = part.values.emplace_back();
      value.set_field("training.epochs");
      value.mutable_value()->set_number_value(i + 1);
    }
    Awaited<absl::StatusOr<StoredSweep>> done;
    jobs_.machine().CreateSweep(std::move(sweep), done.Done());
    return done.Get();
  }
  absl::StatusOr<StoredSweep> Cancel(const std::string& id) {
    Awaited<absl::StatusOr<StoredSweep>> done;
    jobs_.machine().CancelSweep(id, done.Done());
    return done.Get();
  }
  absl::Status Delete(const std::string& id) {
    Awaited<absl::Status> done;
    jobs_.machine().DeleteSweep(id, done.Done());
    return done.Get();
  }

  JobMachineFixture jobs_;
};

TEST_F(JobMachineSweepsTest, MakesAllJobsWithWhatTheyAreOfTheSweep) {
  const auto made = Create(3);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->sweep.name(), HasSubstr("sweeps/search-"));
  EXPECT_EQ(made->sweep.user(), "ann");
  EXPECT_EQ(made->sweep.jobs(), 3);
  jobs_.Reopen();
  const auto read = jobs_.machine().GetSweep(SweepId(made->sweep.name()));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->jobs.size(), 3);
  for (int i = 0; i < 3; ++i) {
    const v1::Job& job = read->jobs[i].job;
    EXPECT_EQ(job.sweep(), made->sweep.name());
    EXPECT_EQ(job.sweep_index(), i);
    EXPECT_EQ(job.sweep_max_running(), 2);
    ASSERT_EQ(job.sweep_values_size(), 1);
    EXPECT_EQ(job.sweep_values(0).value().number_value(), i + 1);
    EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(jobs_.machine().Get(JobId(job.name()))->spec().training().epochs(), i + 1);
  }
}

TEST_F(JobMachineSweepsTest, ARepeatedRequestGivesTheSameSweep) {
  const auto made = Create(2, "once");
  const auto again = Create(2, "once");
  ASSERT_TRUE(made.ok() && again.ok()) << again.status();
  EXPECT_EQ(again->sweep.name(), made->sweep.name());
  EXPECT_EQ(again->jobs.size(), 2);
  EXPECT_EQ(Create(3, "once").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(jobs_.machine().NonTerminalJobs()->size(), 2);
}

TEST_F(JobMachineSweepsTest, OverTheQuotaNothingIsMade) {
  const auto refused = Create(3, "", /*max_queued_jobs=*/2);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      refused.status().message(),
      HasSubstr(
          "queued jobs (--user-max-queued-jobs, or the token's max_queued_jobs); make the sweep smaller"));
  EXPECT_TRUE(jobs_.machine().NonTerminalJobs()->empty());
  EXPECT_TRUE(jobs_.machine().ListSweeps(0, 10)->sweeps.empty());
  EXPECT_TRUE(Create(2, "", /*max_queued_jobs=*/2).ok());
}

TEST_F(JobMachineSweepsTest, CancellingEndsAllThatHaveNotEnded) {
  const auto made = Create(3);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = SweepId(made->sweep.name());
  const std::string first = JobId(made->jobs[0].job.name());
  ASSERT_TRUE(jobs_.Schedule(first).ok());
  const auto cancelled = Cancel(id);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->sweep.state(), v1::SWEEP_STATE_CANCELLING);
  EXPECT_EQ(jobs_.machine().Get(first)->state(), v1::JOB_STATE_CANCELLING);
  EXPECT_EQ(jobs_.machine().Get(JobId(made->jobs[2].job.name()))->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(Cancel(id).ok());
  EXPECT_EQ(Delete(id).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(jobs_.WorkerLost(first, 1).ok());
  EXPECT_TRUE(Cancel(id).ok());
  EXPECT_TRUE(Delete(id).ok());
  EXPECT_EQ(jobs_.machine().GetSweep(id).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(jobs_.machine().Get(first).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Cancel(id).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobMachineSweepsTest, OneThatHasEndedIsNotCancelled) {
  const auto made = Create(1);
  ASSERT_TRUE(jobs_.Cancel(JobId(made->jobs[0].job.name())).ok());
  EXPECT_EQ(Cancel(SweepId(made->sweep.name())).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobMachineSweepsTest, PagesEndWhereSweepsHaveManyJobs) {
  std::vector<std::string> names;
  for (const int jobs : {1, 4, 2, 3}) names.push_back(Create(jobs)->sweep.name());
  std::vector<std::vector<std::string>> pages;
  for (int64_t before = 0; pages.empty() || before != 0;) {
    const auto page = jobs_.machine().ListSweeps(before, 10, /*most_jobs=*/4);
    ASSERT_TRUE(page.ok()) << page.status();
    pages.emplace_back();
    for (const ListedSweep& sweep : page->sweeps) pages.back().push_back(sweep.sweep.name());
    before = page->next_before;
  }
  EXPECT_THAT(pages, ElementsAre(ElementsAre(names[3], names[2]), ElementsAre(names[1], names[0])));
  // A sweep that exceeds the limit alone is still a page.
  EXPECT_EQ(jobs_.machine().ListSweeps(0, 10, /*most_jobs=*/1)->sweeps.size(), 1);
}

TEST_F(JobMachineSweepsTest, PagesGoFromTheNewestOn) {
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) names.push_back(Create(1)->sweep.name());
  const auto first = jobs_.machine().ListSweeps(0, 2);
  ASSERT_EQ(first->sweeps.size(), 2);
  EXPECT_EQ(first->sweeps[0].sweep.name(), names[2]);
  ASSERT_EQ(first->sweeps[0].counts.size(), 1);
  EXPECT_EQ(first->sweeps[0].counts.begin()->second, 1);
  ASSERT_NE(first->next_before, 0);
  const auto second = jobs_.machine().ListSweeps(first->next_before, 2);
  ASSERT_EQ(second->sweeps.size(), 1);
  EXPECT_EQ(second->sweeps[0].sweep.name(), names[0]);
  EXPECT_EQ(second->next_before, 0);
}

}  // namespace
}  // namespace tandem
