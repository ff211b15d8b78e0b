#include "server/scheduler/job_queue.h"

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
    job.create_time = job.waits_since = created;
    ASSERT_TRUE(queue_.Add(std::move(job)));
  }
  // Notes a decision. `since` is the start of the longest-waiting job's wait.
  void NoteWaiting(absl::Time now, absl::Time since = kBegin) { queue_.NoteWaiting({{kGroup, since}}, now); }
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
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(5)), 0);  // Before the first decision.
  NoteWaiting(kBegin);
  NoteWaiting(kBegin + absl::Minutes(30));
  EXPECT_EQ(RaisedBy(kBegin + absl::Minutes(59)), 0);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(1)), 1);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2.5)), 2);
  EXPECT_EQ(RaisedBy(kBegin - absl::Hours(5)), 0);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(100'000)), 1000);
}

TEST_F(JobQueueTest, TheStartOfTheFirstTakesALevelBack) {
  for (const char* id : {"a", "b", "c", "d"}) Add(id);
  NoteWaiting(kBegin);
  // It overtook the first job.
  ASSERT_TRUE(queue_.Start("b", kBegin + absl::Hours(2), /*was_longest=*/false));
  NoteWaiting(kBegin + absl::Hours(2));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2.5)), 2);
  ASSERT_TRUE(queue_.Start("a", kBegin + absl::Hours(2.5), /*was_longest=*/true));
  NoteWaiting(kBegin + absl::Hours(2.5));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2.5)), 1);
  // A group that starts jobs so often does not rise.
  ASSERT_TRUE(queue_.Start("c", kBegin + absl::Hours(2.5), /*was_longest=*/true));
  ASSERT_TRUE(queue_.Start("d", kBegin + absl::Hours(2.5), /*was_longest=*/true));
  Add("e");
  NoteWaiting(kBegin + absl::Hours(2.5));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(3)), 0);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(3.5)), 1);
  EXPECT_FALSE(queue_.Start("a", kBegin + absl::Hours(4), /*was_longest=*/true));
}

TEST_F(JobQueueTest, AJobIsNoOlderForItsGroup) {
  Add("old");
  Add("young", kBegin + absl::Hours(5));
  NoteWaiting(kBegin);
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(6)), 6);
  ASSERT_TRUE(queue_.Remove("old"));
  NoteWaiting(kBegin + absl::Hours(6), kBegin + absl::Hours(5));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(6)), 1);
}

TEST_F(JobQueueTest, TimeInWhichNoJobCouldRunIsNoWait) {
  Add("a");
  NoteWaiting(kBegin);
  queue_.NoteWaiting({}, kBegin + absl::Hours(2));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(9)), 0);
  NoteWaiting(kBegin + absl::Hours(9));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(10)), 1);
  // The group's next jobs start a new wait.
  ASSERT_TRUE(queue_.Remove("a"));
  Add("b");
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(10)), 0);
}

TEST_F(JobQueueTest, AWaitBeforeTheQueueWasMadeCounts) {
  queue_.RestoreWait(kGroup, kBegin);  // The group has no jobs.
  Add("a");
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2)), 0);
  queue_.RestoreWait(kGroup, kBegin);
  NoteWaiting(kBegin + absl::Hours(1));
  EXPECT_EQ(RaisedBy(kBegin + absl::Hours(2)), 2);
}

TEST_F(JobQueueTest, KnowsWhenAGroupIsRaisedNext) {
  EXPECT_EQ(queue_.NextRaise(kBegin), absl::InfiniteFuture());
  Add("a");
  EXPECT_EQ(queue_.NextRaise(kBegin), absl::InfiniteFuture());
  NoteWaiting(kBegin);
  EXPECT_EQ(queue_.NextRaise(kBegin - absl::Hours(3)), kBegin + absl::Hours(1));
  EXPECT_EQ(queue_.NextRaise(kBegin), kBegin + absl::Hours(1));
  EXPECT_EQ(queue_.NextRaise(kBegin + absl::Hours(1)), kBegin + absl::Hours(2));
  EXPECT_EQ(queue_.NextRaise(kBegin + absl::Hours(1.5)), kBegin + absl::Hours(2));
}

}  // namespace
}  // namespace tandem
