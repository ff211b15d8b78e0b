#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/cli/app.h"
#include "client/cli/app_fixture.h"
#include "client/cli/fake_terminal.h"
#include "client/cli/waiting_text.h"
#include "client/lib/fake_daemon.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::FromUnixSeconds(1'000'000);

// Returns the waiting state of a job that probably starts after `likely`, and at the latest after `latest`.
v1::Waiting Waiting(std::optional<absl::Duration> likely, std::optional<absl::Duration> latest) {
  v1::Waiting waiting;
  waiting.set_reason(v1::Waiting::REASON_DEVICES_BUSY);
  if (likely.has_value())
    waiting.mutable_estimated_start_time()->set_seconds(absl::ToUnixSeconds(kNow + *likely));
  if (latest.has_value())
    waiting.mutable_latest_start_time()->set_seconds(absl::ToUnixSeconds(kNow + *latest));
  return waiting;
}

TEST(FormatStartTest, SaysHowCertainItIs) {
  EXPECT_EQ(FormatStart(Waiting(std::nullopt, std::nullopt), kNow), "-");
  EXPECT_EQ(FormatStart(Waiting(absl::Seconds(4), std::nullopt), kNow), "~4 s or later");
  EXPECT_EQ(FormatStart(Waiting(absl::Seconds(4), absl::Seconds(25)), kNow), "~4 s, at most 25 s");
  EXPECT_EQ(FormatStart(Waiting(std::nullopt, absl::Minutes(10)), kNow), "at most 10 min");
  EXPECT_EQ(FormatStart(Waiting(-absl::Seconds(4), std::nullopt), kNow), "soon");
  EXPECT_EQ(FormatStart(Waiting(absl::ZeroDuration(), absl::Hours(3)), kNow), "soon, at most 3 h");
  v1::Waiting starting = Waiting(absl::ZeroDuration(), std::nullopt);
  starting.set_reason(v1::Waiting::REASON_STARTING);
  EXPECT_EQ(FormatStart(starting, kNow), "now");
}

// A bound is rounded up.
TEST(FormatStartTest, ABoundIsNeverTooShort) {
  EXPECT_EQ(FormatStart(Waiting(std::nullopt, absl::Seconds(119)), kNow), "at most 2 min");
  EXPECT_EQ(FormatStart(Waiting(std::nullopt, absl::Minutes(61)), kNow), "at most 2 h");
  EXPECT_EQ(FormatStart(Waiting(std::nullopt, absl::Hours(24 * 2 + 1)), kNow), "at most 3 d");
  EXPECT_EQ(FormatStart(Waiting(std::nullopt, absl::Seconds(5)), kNow + absl::Milliseconds(200)),
            "at most 5 s");
}

TEST(QueueCommandTest, ShowsStartsWithTheirUncertainty) {
  std::string folder = (std::filesystem::temp_directory_path() / "tandem-queue-XXXXXX").string();
  folder = mkdtemp(folder.data());
  FakeTerminal terminal;
  client::FakeDaemon daemon;
  terminal.environment["XDG_STATE_HOME"] = folder;
  terminal.environment["TANDEM_ADDRESS"] = daemon.address();
  terminal.now = kNow;
  daemon.list_queue = [](v1::ListQueueResponse* queue) {
    v1::QueuedJob& gang = *queue->add_jobs();
    gang.set_job("jobs/gang");
    gang.set_user("ann");
    gang.set_raised_by(2);
    gang.set_devices(4);
    gang.set_expected_seconds(3);
    gang.mutable_create_time()->set_seconds(absl::ToUnixSeconds(kNow) - 60);
    *gang.mutable_waiting() = Waiting(absl::Seconds(4), absl::Minutes(2));
    gang.mutable_waiting()->set_position(1);
    gang.mutable_waiting()->set_message("Needs 4 CPU devices; 1 of 4 free.");
    v1::QueuedJob& small = *queue->add_jobs();
    small = gang;
    small.set_job("jobs/small");
    small.set_raised_by(0);
    small.set_devices(1);
    small.clear_expected_seconds();
    *small.mutable_waiting() = Waiting(absl::Seconds(7), std::nullopt);
    small.mutable_waiting()->set_position(2);
    queue->set_total_size(2);
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunCommand({"queue", "-o", "wide"}, terminal), 0) << terminal.err();
  EXPECT_EQ("\n" + terminal.out(), R"(
#  JOB    USER  PRIORITY  DEVICES  START                REASON          TAKES    AGE  MESSAGE
1  gang   ann        0+2        4  ~4 s, at most 2 min  devices_busy  ~3.00 s  1 min  Needs 4 CPU devices; 1 of 4 free.
2  small  ann          0        1  ~7 s or later        devices_busy        -  1 min
)");
  std::filesystem::remove_all(folder);
}

class QueueTest : public AppFixture {};

TEST_F(QueueTest, AnEmptyQueueAndALongQueueSaySo) {
  v1::ListQueueResponse queue;
  daemon_.list_queue = [&](v1::ListQueueResponse* response) {
    *response = queue;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"queue"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "no jobs wait\n");
  queue.add_jobs()->set_job("jobs/a");
  queue.set_total_size(75);
  EXPECT_EQ(Run({"queue", "--limit", "1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("the first 1 of 75; --limit shows more\n"));
  EXPECT_EQ(Run({"queue", "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"jobs/a\""));
  daemon_.list_queue = nullptr;
  EXPECT_NE(Run({"queue"}), 0);
}

TEST_F(QueueTest, ListsUsersWithTheirLimits) {
  v1::ListQueueResponse queue;
  daemon_.list_queue = [&](v1::ListQueueResponse* response) {
    *response = queue;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"queue", "--users"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "no user has had a job yet\n");
  v1::UserUsage& ann = *queue.add_users();
  ann.set_user("ann");
  ann.set_device_seconds(90);
  ann.set_devices(2);
  ann.set_max_devices(4);
  ann.set_queued_jobs(7);
  EXPECT_EQ(Run({"queue", "--users"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), ContainsRegex("USER +USED +DEVICES +QUEUED\n"));
  EXPECT_THAT(terminal_.out(), ContainsRegex("ann +1 min 30 s +2/4 +7\n"));
}

TEST_F(QueueTest, APriorityIsChanged) {
  daemon_.update_job = [](const v1::UpdateJobRequest& request, v1::Job* job) -> grpc::Status {
    if (request.job().priority() > 0) return {grpc::StatusCode::PERMISSION_DENIED, "only for administrators"};
    *job = request.job();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"priority", "lenet-1", "-5"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "lenet-1 priority -5\n");
  EXPECT_NE(Run({"priority", "lenet-1", "5"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("only for administrators"));
  EXPECT_NE(Run({"priority", "none", "0"}), 0);
}

}  // namespace
}  // namespace tandem::cli
