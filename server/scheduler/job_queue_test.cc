#include "server/scheduler/job_queue.h"

#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

const absl::Time kBegin = absl::FromUnixSeconds(1'700'000'000);

// An ageing interval of an hour, and jobs of one user and priority.
class JobQueueTest : public testing::Test {
 protected:
  void Add(const std::string& id, absl::Time created, absl::Time since, const std::string& sweep = "") {
    WaitingJob job;
    job.id = id;
    job.user = "ann";
    job.create_time = created;
    job.waits_since = since;
    job.sweep = sweep;
    ASSERT_TRUE(queue_.Add(std::move(job)));
  }

  // "id level" of the job that is raised.
  std::string Raised(absl::Time now) {
    const JobQueue::Group& group = queue_.groups().begin()->second;
    const auto job = queue_.LongestWaiting(
        group, [](const WaitingJob&) { return true; }, now);
    if (job == group.jobs.end()) return "none";
    return job->second.id + " " + std::to_string(queue_.RaisedBy(group, job->second, now));
  }
  void HoldBack(const std::string& sweep, absl::Time now) {
    queue_.NoteLimits([&](const WaitingJob& job) { return job.sweep != sweep; }, now);
  }

  JobQueue queue_;
};

TEST_F(JobQueueTest, OnlyTheWaitOfTheJobCounts) {
  Add("ran", kBegin, kBegin + absl::Hours(10));
  EXPECT_EQ(Raised(kBegin + absl::Hours(10)), "ran 0");
  EXPECT_EQ(Raised(kBegin + absl::Hours(12.5)), "ran 2");
  // Older, though it came later, and the one that has waited.
  Add("waited", kBegin + absl::Hours(5), kBegin + absl::Hours(5));
  EXPECT_EQ(queue_.groups().begin()->second.jobs.begin()->second.id, "ran");
  EXPECT_EQ(Raised(kBegin + absl::Hours(10)), "waited 5");
  ASSERT_TRUE(queue_.Start("waited", kBegin + absl::Hours(10), /*was_longest=*/true));
  EXPECT_EQ(Raised(kBegin + absl::Hours(12.5)), "ran 2");
}

TEST_F(JobQueueTest, AWaitBeginsNoSoonerThanTheJob) {
  Add("new", kBegin, kBegin - absl::Hours(10));
  EXPECT_EQ(Raised(kBegin + absl::Hours(1)), "new 1");
}

TEST_F(JobQueueTest, TimeUnderALimitOfItsOwnIsNoWait) {
  Add("child", kBegin, kBegin, "sweeps/s");
  Add("child2", kBegin, kBegin, "sweeps/s");
  EXPECT_EQ(Raised(kBegin + absl::Hours(2)), "child 2");
  HoldBack("sweeps/s", kBegin + absl::Hours(2));
  EXPECT_EQ(Raised(kBegin + absl::Hours(9)), "none");
  Add("late", kBegin + absl::Hours(7), kBegin + absl::Hours(7), "sweeps/s");
  HoldBack("", kBegin + absl::Hours(12));
  EXPECT_EQ(Raised(kBegin + absl::Hours(12)), "child 2");
  EXPECT_EQ(Raised(kBegin + absl::Hours(13)), "child 3");
  ASSERT_TRUE(queue_.Remove("child"));
  ASSERT_TRUE(queue_.Remove("child2"));
  // It was held back for all of its time.
  EXPECT_EQ(Raised(kBegin + absl::Hours(14)), "late 2");
}

TEST_F(JobQueueTest, AStartBeforeTheQueueWasMadeCounts) {
  queue_.NoteStart("ann", 0, kBegin + absl::Hours(10));
  Add("old", kBegin, kBegin);
  EXPECT_EQ(Raised(kBegin + absl::Hours(12)), "old 2");
}

TEST_F(JobQueueTest, KnowsWhenAJobIsRaisedNext) {
  EXPECT_EQ(queue_.NextRaise(kBegin), absl::InfiniteFuture());
  Add("a", kBegin, kBegin);
  EXPECT_EQ(queue_.NextRaise(kBegin), kBegin + absl::Hours(1));
  EXPECT_EQ(queue_.NextRaise(kBegin + absl::Hours(1)), kBegin + absl::Hours(2));
  EXPECT_EQ(queue_.NextRaise(kBegin + absl::Hours(1.5)), kBegin + absl::Hours(2));
}

}  // namespace
}  // namespace tandem
