#include "server/clusters/slurm/queue_answer.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHeader[] = "tandem-job|JOBID|STATE|START_TIME|NODELIST|REASON|COMMENT|tandem-end\n";

TEST(QueueAnswerTest, ReadsJobs) {
  const auto jobs = ParseQueue(absl::StrCat(
      kHeader, "tandem-job|41|PENDING|2026-11-28T05:00:00||Resources|tandem:lenet-a:1|tandem-end\n",
      "tandem-job|42|RUNNING|2026-11-28T04:00:00|n[1-2]|None|tandem:lenet-b:3|tandem-end\n",
      "tandem-job|43|PENDING|N/A||Priority|tandem:lenet-c:1|tandem-end\n",
      "tandem-job|44|BRAND_NEW|N/A|n9|None|tandem:lenet-d:1|tandem-end\n"));
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_THAT(*jobs, SizeIs(4));
  EXPECT_EQ((*jobs)[0].id, "41");
  EXPECT_EQ((*jobs)[0].state, SlurmState::kPending);
  EXPECT_EQ((*jobs)[0].reason, "Resources");
  EXPECT_EQ((*jobs)[0].comment, "tandem:lenet-a:1");
  EXPECT_EQ((*jobs)[0].start, absl::FromCivil(absl::CivilSecond(2026, 11, 28, 5), absl::UTCTimeZone()));
  EXPECT_THAT((*jobs)[0].nodes, IsEmpty());
  EXPECT_EQ((*jobs)[1].state, SlurmState::kRunning);
  EXPECT_EQ((*jobs)[1].reason, "");
  EXPECT_EQ((*jobs)[1].start, absl::FromCivil(absl::CivilSecond(2026, 11, 28, 4), absl::UTCTimeZone()));
  EXPECT_THAT((*jobs)[1].nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ((*jobs)[2].start, std::nullopt);
  EXPECT_EQ((*jobs)[3].state, SlurmState::kUnknown);
  EXPECT_EQ((*jobs)[3].state_text, "BRAND_NEW");
}

TEST(QueueAnswerTest, LeavesForeignJobsOut) {
  const auto jobs = ParseQueue(
      absl::StrCat(kHeader, "tandem-job|7_[1-4]|PENDING|N/A||Resources|(null)|tandem-end\n",
                   "tandem-job|8|RUNNING|2026-11-28T04:00:00|n1|None|a|b\ntandem-job|c|tandem-end\n",
                   "tandem-job|9|RUNNING|2026-11-28T04:00:00|n1|None||tandem-end\n",
                   "tandem-job|10|RUNNING|2026-11-28T04:00:00|n1|None|tandem:x:1|tandem-end\n"));
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_THAT(*jobs, SizeIs(1));
  EXPECT_EQ((*jobs)[0].id, "10");
}

TEST(QueueAnswerTest, AHeaderAloneIsNoJobs) {
  const auto jobs = ParseQueue(kHeader);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(*jobs, IsEmpty());
}

TEST(QueueAnswerTest, AnythingElseIsNoAnswer) {
  const std::string record = "tandem-job|42|RUNNING|N/A|n1|None|tandem:x:1|tandem-end\n";
  for (const std::string& output : {
           std::string(),
           std::string("\n"),
           record,
           std::string("slurm_load_jobs error: Unable to contact slurm controller\n"),
           absl::StrCat(kHeader, "slurm_load_jobs error\n"),
           absl::StrCat(kHeader, record.substr(0, record.size() - 1)),
           absl::StrCat(kHeader, record.substr(0, 20)),
           absl::StrCat(kHeader, record.substr(5)),
           absl::StrCat(kHeader, record, "\n"),
           absl::StrCat(kHeader, "tandem-job|42|RUNNING|N/A|n1|None|tandem-end\n"),
           absl::StrCat(kHeader, "tandem-job||RUNNING|N/A|n1|None|tandem:x:1|tandem-end\n"),
           absl::StrCat(kHeader, "tandem-job|42|R?NNING|N/A|n1|None|tandem:x:1|tandem-end\n"),
           absl::StrCat(kHeader, "tandem-job|42||N/A|n1|None|tandem:x:1|tandem-end\n"),
           absl::StrCat(kHeader, "tandem-job|42|RUNNING|soon|n1|None|tandem:x:1|tandem-end\n"),
           std::string(1000, '\0'),
       }) {
    const auto jobs = ParseQueue(output);
    EXPECT_TRUE(absl::IsUnavailable(jobs.status())) << output << ": " << jobs.status();
    EXPECT_THAT(std::string(jobs.status().message()), HasSubstr("cannot read the answer of squeue"));
  }
}

// A cut answer is never taken for a shorter one.
TEST(QueueAnswerTest, EveryCutIsNoticedOrLosesWholeRecordsOnly) {
  const std::string record = "tandem-job|42|RUNNING|N/A|n1|None|tandem:x:1|tandem-end\n";
  const std::string whole = absl::StrCat(kHeader, record);
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto jobs = ParseQueue(whole.substr(0, size));
    if (size == whole.size() - record.size()) continue;
    EXPECT_FALSE(jobs.ok()) << size;
  }
}

TEST(PartitionAnswerTest, JoinsTheRecordsOfAPartition) {
  const auto partitions = ParsePartitions(
      "tandem-partition|work*|up|infinite|2|idle|8|0/16/0/16|gpu:a100:4(S:0-1)|tandem-end\n"
      "tandem-partition|work*|up|infinite|1|idle~|8|0/8/0/8|gpu:a100:4|tandem-end\n"
      "tandem-partition|work*|up|infinite|1|mix|16|4/12/0/16|(null)|tandem-end\n"
      "tandem-partition|work*|up|infinite|1|idle*|8|0/0/8/8|gpu:a100:4|tandem-end\n"
      "tandem-partition|short|down|1-00:00:00|1|alloc|8|8/0/0/8|(null)|tandem-end\n");
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_THAT(*partitions, SizeIs(2));
  const SlurmPartition& work = (*partitions)[0];
  EXPECT_EQ(work.name, "work");
  EXPECT_TRUE(work.is_default);
  EXPECT_TRUE(work.is_up);
  EXPECT_EQ(work.time_limit, absl::InfiniteDuration());
  EXPECT_EQ(work.nodes, 5);
  EXPECT_EQ(work.free_nodes, 3);
  EXPECT_EQ(work.ready_nodes, 4);
  EXPECT_EQ(work.down_nodes, 1);
  EXPECT_EQ(work.cpus_per_node, 8);
  EXPECT_EQ(work.most_cpus_per_node, 16);
  EXPECT_EQ(work.cpus, 48);
  EXPECT_EQ(work.free_cpus, 36);
  EXPECT_EQ(work.gpus_per_node, 0);
  EXPECT_EQ(work.most_gpus_per_node, 4);
  EXPECT_EQ(work.gpus, 16);
  EXPECT_EQ(work.free_gpus, 12);
  const SlurmPartition& brief = (*partitions)[1];
  EXPECT_EQ(brief.name, "short");
  EXPECT_FALSE(brief.is_default);
  EXPECT_FALSE(brief.is_up);
  EXPECT_EQ(brief.time_limit, absl::Hours(24));
  EXPECT_EQ(brief.free_nodes, 0);
}

TEST(PartitionAnswerTest, KnowsTheNodesThatStartNoJobs) {
  for (const char* state : {"down", "down*", "drain", "drng", "drain*", "fail", "idle*", "unk*", "inval"}) {
    const auto partitions = ParsePartitions(
        absl::StrCat("tandem-partition|work*|up|infinite|2|", state, "|1|0/0/2/2|(null)|tandem-end\n"));
    ASSERT_TRUE(partitions.ok()) << partitions.status();
    EXPECT_EQ((*partitions)[0].down_nodes, 2) << state;
    EXPECT_EQ((*partitions)[0].ready_nodes, 0) << state;
  }
  for (const char* state : {"idle", "idle~", "mix", "alloc", "comp", "plnd", "resv", "boot", "idle#"}) {
    const auto partitions = ParsePartitions(
        absl::StrCat("tandem-partition|work*|up|infinite|2|", state, "|1|0/0/2/2|(null)|tandem-end\n"));
    ASSERT_TRUE(partitions.ok()) << partitions.status();
    EXPECT_EQ((*partitions)[0].down_nodes, 0) << state;
  }
}

TEST(PartitionAnswerTest, AnythingElseIsNoAnswer) {
  for (const char* output : {
           "",
           "slurm_load_partitions: Unable to contact slurm controller\n",
           "tandem-partition|work*|up|infinite|two|idle|8|0/16/0/16|(null)|tandem-end\n",
           "tandem-partition|work*|up|infinite|2|idle|8|0/16/16|(null)|tandem-end\n",
           "tandem-partition||up|infinite|2|idle|8|0/16/0/16|(null)|tandem-end\n",
           "tandem-partition|work*|up|infinite|2|idle|8|0/16/0/16|(null)",
       }) {
    EXPECT_TRUE(absl::IsUnavailable(ParsePartitions(output).status())) << output;
  }
}

}  // namespace
}  // namespace tandem
