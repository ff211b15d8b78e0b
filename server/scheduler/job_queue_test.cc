#include "server/scheduler/job_queue.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

const absl::Time kBegin = absl::FromUnixSeconds(1'700'000'000);

// An ageing interval of an hour, and jobs of one user and priority.
class JobQueueTest : public testing::Test {
 protected:
  void Add(const std::string& id, absl::Time created = kBegin) {
    WaitingJob job;
    job.id = id;
    job.user = "ann";
    job.create_time = created;
    ASSERT_TRUE(queue_.Add(std::move(job)));
  }
  // After a decision.
  void NoteWaiting(bool waits, absl::Time now) {
    queue_.NoteWaiting(waits ? std::set<JobQueue::GroupKey>{kGroup} : std::set<JobQueue::GroupKey>(), now);
  }
  int RaisedBy(absl::Time now) { return queue_.RaisedBy(queue_.groups().at(kGroup), now); }

  const JobQueue::GroupKey kGroup = {"ann", 0};
  JobQueue queue_;
};

TEST_F(JobQueueTest, AGroupsJobsAreInTheOrderOfTheirAge) {
  Add("young", kBegin + absl::Hours(1));
  Add("old");
  Add("also old");
  EXPECT_FALSE(queue_.Add(*queue_.Find("old")));
  std::vector<std::string> order;
  for (const auto& [key, job] : queue_.groups().at(kGroup).jobs) order.push_back(job.id);
  EXPECT_THAT(order, ElementsAre("old", "also old", "young"));
  ASSERT_TRUE(queue_.Remove("old"));
  EXPECT_FALSE(queue_.Remove("old"));
  EXPECT_EQ(queue_.Find("old"), nullptr);
  EXPECT_EQ(queue_.size(), 2);
}

TEST_F(JobQueueTest, AGroupGoesUpALevelInEachInterval) {
  Add("a");
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(5)), 0);  // No decision yet.
  NoteWaiting(true, kBegin);
  NoteWaiting(true, kBegin + absl::Minutes(30));
  EXPECT_EQ(RaisedBy(kBegin + absl::Minutes(59)), 0);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(1)), 1);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2.5)), 2);
  // A clock that is set back lowers nobody.
  EXPECT_EQ(RaisedBy(kBegin - absl::Hours(5)), 0);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(100'000)), 1000);
}

TEST_F(JobQueueTest, TheStartOfTheFirstEndsTheWait) {
  Add("a");
  Add("b");
  Add("c");
  NoteWaiting(true, kBegin);
  // It has gone before the first.
  ASSERT_TRUE(queue_.Start("b", /*was_first=*/false));
  NoteWaiting(true, kBegin + absl::Hours(2));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(3)), 3);
  ASSERT_TRUE(queue_.Start("a", /*was_first=*/true));
  NoteWaiting(true, kBegin + absl::Hours(3));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(3.5)), 0);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(4)), 1);
  EXPECT_FALSE(queue_.Start("a", /*was_first=*/true));
}

TEST_F(JobQueueTest, TimeInWhichNoJobCouldRunIsNoWait) {
  Add("a");
  NoteWaiting(true, kBegin);
  NoteWaiting(false, kBegin + absl::Hours(2));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(9)), 0);
  NoteWaiting(true, kBegin + absl::Hours(9));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(10)), 1);
  // The next jobs of the group wait anew.
  ASSERT_TRUE(queue_.Remove("a"));
  Add("b");
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(10)), 0);
}

TEST_F(JobQueueTest, AWaitBeforeTheQueueWasMadeCounts) {
  queue_.RestoreWait(kGroup, kBegin);  // It has no jobs.
  Add("a");
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2)), 0);
  queue_.RestoreWait(kGroup, kBegin);
  NoteWaiting(true, kBegin + absl::Hours(1));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2)), 2);
}

TEST_F(JobQueueTest, KnowsWhenAGroupIsRaisedNext) {
  EXPECT_EQ(queue_.NextRaise(kBegin), absl::InfiniteFuture());
  Add("a");
  EXPECT_EQ(queue_.NextRaise(kBegin), absl::InfiniteFuture());
  NoteWaiting(true, kBegin);
  EXPECT_EQ(queue_.NextRaise(kBegin - absl::Hours(3)), kBegin + absl::Hours(1));
  EXPECT_EQ(queue_.NextRaise(kBegin), kBegin + absl::Hours(1));
  EXPECT_EQ(queue_.NextRaise(kBegin + absl::Hours(1)), kBegin + absl::Hours(2));
  EXPECT_EQ(queue_.NextRaise(kBegin + absl::Hours(1.5)), kBegin + absl::Hours(2));
}

}  // namespace
}  // namespace tandem
