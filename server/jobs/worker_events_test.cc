#include "server/jobs/worker_events.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

using ::google::protobuf::util::TimeUtil;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;

class WorkerEventsTest : public testing::Test {
 protected:
  JobMachineFixture jobs_;
};

TEST_F(WorkerEventsTest, ReportsOfLoadsAndValidationsAreInTheLog) {
  const std::string id = jobs_.RunningJob();
  auto loads = MakeWorkerEvent(2);
  loads.mutable_report()->mutable_worker_loads()->set_step(7);
  auto validation = MakeWorkerEvent(3);
  validation.mutable_report()->mutable_validation()->set_step(20);
  validation.mutable_report()->mutable_validation()->mutable_best()->set_step(20);
  ASSERT_TRUE(jobs_.Apply(id, 1, {loads, validation}).ok());
  const auto log = jobs_.Log(id);
  ASSERT_GE(log.size(), 2);
  EXPECT_EQ(log[log.size() - 2].worker_loads().step(), 7);
  EXPECT_EQ(log.back().validation().step(), 20);
  EXPECT_EQ(jobs_.Get(id).best().step(), 20);
  jobs_.CheckLog(id);
}

TEST_F(WorkerEventsTest, ARepeatedEventChangesNothing) {
  const std::string id = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Apply(id, 1, {ProgressAt(2, 1), ProgressAt(3, 2)}).ok());
  jobs_.Reopen();
  const auto position =
      jobs_.Apply(id, 1, {Started(1), ProgressAt(2, 100), ProgressAt(3, 100), ProgressAt(4, 3)});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->worker_sequence, 4);
  EXPECT_EQ(jobs_.Get(id).progress().step(), 3);
  EXPECT_THAT(jobs_.Log(id), SizeIs(6));
  jobs_.CheckLog(id);
}

TEST_F(WorkerEventsTest, AGapIsRefusedWhole) {
  const std::string id = jobs_.RunningJob();
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(2, 1), ProgressAt(4, 2)}).status().code(),
            absl::StatusCode::kOutOfRange);
  const auto position = jobs_.Apply(id, 1, {});
  ASSERT_TRUE(position.ok());
  EXPECT_EQ(position->worker_sequence, 1);
  EXPECT_FALSE(jobs_.Get(id).has_progress());
  jobs_.CheckLog(id);
}

TEST_F(WorkerEventsTest, EventsThatHaveNoPlaceAreRefused) {
  const std::string id = jobs_.RunningJob();
  EXPECT_EQ(jobs_.Apply(id, 1, {Started(2)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply(id, 1, {MakeWorkerEvent(2)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_RUNNING)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(0, 1)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply("none", 1, {}).status().code(), kNotFound);
  const std::string starting = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(starting).ok());
  EXPECT_EQ(jobs_.Apply(starting, 1, {Finished(1, v1::JOB_STATE_SUCCEEDED)}).status().code(),
            kInvalidArgument);
  jobs_.CheckLog(id);
  jobs_.CheckLog(starting);
}

TEST_F(WorkerEventsTest, TrainingOnAClusterCountsAlsoIfTheJobMustStop) {
  JobMachine::NewJob job;
  job.spec.mutable_cluster()->mutable_slurm();
  job.submitted_spec = job.spec;
  const std::string id = JobId(jobs_.Create(std::move(job))->name());
  Awaited<absl::StatusOr<v1::Job>> scheduled;
  jobs_.machine().Schedule(id, {}, scheduled.Done());
  ASSERT_TRUE(scheduled.Get().ok());
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Seconds(10));
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.Get(id).run_seconds(), 10);
  jobs_.CheckLog(id);
}

TEST_F(WorkerEventsTest, AWorkerReportsNoKindThatIsTheDaemons) {
  const std::string id = jobs_.RunningJob();
  auto state = MakeWorkerEvent(2);
  state.mutable_report()->mutable_state_change()->set_to(v1::JOB_STATE_SUCCEEDED);
  auto priority = MakeWorkerEvent(2);
  priority.mutable_report()->mutable_priority_change()->set_to(9);
  auto none = MakeWorkerEvent(2);
  none.mutable_report()->set_terminal(true);
  for (const auto& event : {state, priority, none}) {
    EXPECT_EQ(jobs_.Apply(id, 1, {event}).status().code(), kInvalidArgument) << event.DebugString();
  }
  EXPECT_THAT(std::string(jobs_.Apply(id, 1, {none}).status().message()),
              HasSubstr("this daemon does not know its kind"));
  EXPECT_THAT(jobs_.Log(id), SizeIs(3));
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_RUNNING);
  jobs_.CheckLog(id);
}

TEST_F(WorkerEventsTest, AWorkerSetsOnlyAReportsKind) {
  const std::string id = jobs_.RunningJob();
  auto event = MakeWorkerEvent(2);
  *event.mutable_time() = TimeUtil::SecondsToTimestamp(1700000005);
  v1::JobEvent& report = *event.mutable_report();
  report.set_job("jobs/other");
  report.set_sequence(99);
  *report.mutable_time() = TimeUtil::SecondsToTimestamp(1);
  report.set_attempt(9);
  report.set_terminal(true);
  v1::Notice& notice = *report.mutable_notice();
  notice.set_message("hear");
  report.GetReflection()->MutableUnknownFields(&report)->AddVarint(1000, 1);
  notice.GetReflection()->MutableUnknownFields(&notice)->AddLengthDelimited(1000, std::string(1 << 20, 'x'));
  ASSERT_TRUE(jobs_.Apply(id, 1, {event}).ok());

  v1::JobEvent logged;
  logged.set_job("jobs/" + id);
  logged.set_sequence(4);
  *logged.mutable_time() = event.time();
  logged.set_attempt(1);
  logged.mutable_notice()->set_message("hear");
  EXPECT_EQ(jobs_.Log(id).back().SerializeAsString(), logged.SerializeAsString());
  jobs_.CheckLog(id);
}

TEST_F(WorkerEventsTest, ArtifactsAreFilesOfTheJobsFolder) {
  const std::string id = jobs_.RunningJob();
  for (const char* name : {"", ".", "..", "/etc/passwd", "../other/model.safetensors", "a/b", "a\nb"}) {
    auto artifact = MakeWorkerEvent(2);
    artifact.mutable_report()->mutable_artifact()->set_name(name);
    EXPECT_EQ(jobs_.Apply(id, 1, {artifact}).status().code(), kInvalidArgument) << name;
  }
  EXPECT_THAT(jobs_.Get(id).artifacts(), IsEmpty());
  auto artifact = MakeWorkerEvent(2);
  artifact.mutable_report()->mutable_artifact()->set_name("best..model.safetensors");
  EXPECT_TRUE(jobs_.Apply(id, 1, {artifact}).ok());
  EXPECT_THAT(jobs_.Get(id).artifacts(), SizeIs(1));
}

// All lists of jobs, and so all clients, get these texts.
TEST_F(WorkerEventsTest, AWorkerIsBrief) {
  const std::string id = jobs_.RunningJob();
  // The cut would fall inside a character.
  std::string text = "x";
  while (text.size() < (3 << 20)) text += "\u00e4";
  auto notice = MakeWorkerEvent(2);
  notice.mutable_report()->mutable_notice()->set_message(text);
  ASSERT_TRUE(jobs_.Apply(id, 1, {notice}).ok());
  auto artifact = MakeWorkerEvent(3);
  artifact.mutable_report()->mutable_artifact()->set_name("a");
  artifact.mutable_report()->mutable_artifact()->set_description(text);
  ASSERT_TRUE(jobs_.Apply(id, 1, {artifact}).ok());
  auto named = MakeWorkerEvent(4);
  named.mutable_report()->mutable_artifact()->set_name(std::string(10'000, 'x'));
  EXPECT_EQ(jobs_.Apply(id, 1, {named}).status().code(), kInvalidArgument);
  auto epoch = MakeWorkerEvent(4);
  (*epoch.mutable_report()->mutable_epoch()->mutable_validation()->mutable_metrics())[text] = 1;
  EXPECT_EQ(jobs_.Apply(id, 1, {epoch}).status().code(), kInvalidArgument);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(4, v1::JOB_STATE_FAILED, text)}).ok());
  const v1::Job job = jobs_.Get(id);
  EXPECT_LT(job.ByteSizeLong(), 64 << 10);
  EXPECT_THAT(job.message(), testing::EndsWith("\u00e4 [... cut off]"));
  jobs_.CheckLog(id);
  for (const v1::JobEvent& event : jobs_.Log(id)) EXPECT_LT(event.ByteSizeLong(), 64 << 10);
}

TEST_F(WorkerEventsTest, ArtifactsAreSoMany) {
  const std::string id = jobs_.RunningJob();
  std::vector<internal::v1::WorkerEvent> events;
  for (int i = 0; i < 1000; ++i) {
    events.push_back(MakeWorkerEvent(2 + i));
    events.back().mutable_report()->mutable_artifact()->set_name(absl::StrCat("file-", i));
  }
  ASSERT_TRUE(jobs_.Apply(id, 1, events).ok());
  auto more = MakeWorkerEvent(1002);
  more.mutable_report()->mutable_artifact()->set_name("one-more");
  EXPECT_EQ(jobs_.Apply(id, 1, {more}).status().code(), kInvalidArgument);
  EXPECT_THAT(jobs_.Get(id).artifacts(), SizeIs(1000));
}

}  // namespace
}  // namespace tandem
