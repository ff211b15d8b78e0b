// Sends SIGKILL to the daemon at random moments while a job reports every step. A watcher that returns each
// time with its last sequence number must receive every event once and in order, and the job must train to
// its end.
//
//   bazel test //tests/fault:daemon_kill_test --test_arg=--rounds=20 --test_arg=--seed=7
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/fault/flags.h"
#include "tests/fault/mishap_fixture.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/stored_log.h"
#include "tests/integration/watcher.h"

namespace tandem::testing {
namespace {

// --name=number on the command line.
struct Flags {
  // The number of kills of the daemon. 0: 6, or 20 if $TANDEM_WHOLE is 1.
  int64_t rounds = 0;
  // The seed of the moments. 0: a new seed each time.
  int64_t seed = 0;
  // Optimizer steps of a job, which reports each step; whole hundreds. 0: 2100, or 6000 if $TANDEM_WHOLE is
  // 1.
  int64_t steps = 0;
} flags;

constexpr absl::Duration kPatience = absl::Minutes(5);

class DaemonKillTest : public MishapFixture {
 protected:
  DaemonKillTest() : MishapFixture(flags.seed, /*cpu_devices=*/1) {
    rounds_ = static_cast<int>(Amount(flags.rounds, /*sample=*/6, /*whole=*/20));
    flags.steps = Amount(flags.steps, /*sample=*/2100, /*whole=*/6000);
  }

  std::string Submit() {
    std::string json;
    const v1::JobSpec spec = LongJob(flags.steps);
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(spec, &json).ok());
    const CliResult result = cli_.Run({"submit", scratch_.Write("job.json", json)});
    EXPECT_EQ(result.exit_code, 0) << result;
    return Cli::SubmittedJob(result);
  }

  // Waits for a random moment of the job, kills the daemon and starts the next. False where the job ended
  // before.
  bool KillOnce(const Watcher& watcher) {
    // First some events (a daemon that has caught up, or is just doing so), then a moment in between two.
    if (!watcher.WaitForEvents(watcher.count() + Random(1, 60), kPatience)) return false;
    absl::SleepFor(absl::Microseconds(Random(0, 20000)));
    if (watcher.ended()) return false;
    KillAndLaunch();
    if (KillsOfAllJobs() < rounds_ && Random(0, 3) == 0) {
      // Again while it starts: while it takes back its workers, or before.
      absl::SleepFor(absl::Milliseconds(Random(0, 300)));
      KillAndLaunch();
    }
    const absl::Status ready = daemon_.WaitUntilReady();
    EXPECT_TRUE(ready.ok()) << ready;
    return ready.ok();
  }

  void KillAndLaunch() {
    kills_.push_back(absl::Now());
    daemon_.Kill();
    EXPECT_TRUE(daemon_.Launch().ok());
  }

  int KillsOfAllJobs() const { return earlier_kills_ + static_cast<int>(kills_.size()); }

  static std::vector<int64_t> ReportedSteps(const std::vector<v1::JobEvent>& events) {
    std::vector<int64_t> steps;
    for (const v1::JobEvent& event : events) {
      if (event.has_progress()) steps.push_back(event.progress().step());
    }
    return steps;
  }

  static std::vector<v1::JobEvent> ParseJsonLines(const std::string& text) {
    std::vector<v1::JobEvent> events;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(std::string(line), &events.emplace_back()).ok())
          << line;
    }
    return events;
  }

  void CheckJob(const Watcher& watcher, CliRun& follower, const std::string& job) {
    ASSERT_TRUE(watcher.WaitForEnd(kPatience)) << "after " << watcher.count() << " events\n" << daemon_.Log();
    ASSERT_TRUE(watcher.status().ok()) << watcher.status().error_message();
    const std::vector<v1::JobEvent> seen = watcher.events();
    ExpectWholeLog(seen, job);
    EXPECT_GE(seen.size(), 2000);
    EXPECT_EQ(seen.back().state_change().to(), v1::JOB_STATE_SUCCEEDED) << seen.back().DebugString();
    // Expects the same events from the daemon, and from the command, which reconnected after each kill.
    ExpectSameLog(ReadEvents(daemon_, job), seen);
    const CliResult followed = follower.Finish();
    EXPECT_EQ(followed.exit_code, 0) << followed.err;
    ExpectSameLog(ParseJsonLines(followed.out), seen);

    // Nothing that the worker reported is missing: a step each.
    const std::vector<int64_t> steps = ReportedSteps(seen);
    for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], i + 1);
    EXPECT_EQ(steps.size(), flags.steps);
    // A kill after the job's end does not count for this job.
    const absl::Time end =
        absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(seen.back().time()));
    while (!kills_.empty() && kills_.back() >= end) kills_.pop_back();
    for (const v1::JobEvent& event : seen) EXPECT_LE(event.attempt(), 1) << "the job was started again";
    logs_.emplace_back(job, seen);
  }

  int rounds_ = 0;
  // Moments of the kills during the present job; number of those during jobs before it.
  std::vector<absl::Time> kills_;
  int earlier_kills_ = 0;
  std::vector<std::pair<std::string, std::vector<v1::JobEvent>>> logs_;
};

TEST_F(DaemonKillTest, NoEventIsLostOrDoubled) {
  // A job usually lasts for all rounds. A machine that trains faster than it starts daemons needs more jobs.
  while (KillsOfAllJobs() < rounds_ && !HasFailure()) {
    kills_.clear();
    const std::string job = Submit();
    ASSERT_NE(job, "");
    Watcher watcher(daemon_, job);
    const std::unique_ptr<CliRun> follower = cli_.Start({"watch", job, "-o", "json"});
    // A command that has not reached the daemon yet may give up, and a job whose worker is about to start
    // gets a second attempt. AcceptedJobsTrainOnce kills the daemon that early.
    const absl::Time deadline = absl::Now() + kPatience;
    while (!absl::StrContains(follower->Out(), "\"progress\"") && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_TRUE(absl::StrContains(follower->Out(), "\"progress\"")) << follower->Err();
    while (KillsOfAllJobs() < rounds_ && KillOnce(watcher)) {
    }
    CheckJob(watcher, *follower, job);
    std::cout << job << ": " << kills_.size() << " kills, " << watcher.count() << " events, "
              << watcher.calls() << " calls of WatchJob\n";
    // It ended before the daemon could be killed.
    if (kills_.empty()) flags.steps *= 4;
    earlier_kills_ += kills_.size();
    kills_.clear();
  }
  EXPECT_EQ(daemon_.Terminate(), 0);
  EXPECT_TRUE(daemon_.Processes().empty());
  for (const auto& [job, seen] : logs_) {
    const auto stored = ReadStoredLog(daemon_.DatabasePath(), job);
    ASSERT_TRUE(stored.ok()) << stored.status();
    ExpectSameLog(*stored, seen);
  }
}

// Around a job's start there is more to lose: the job itself, its lease, a worker that has just been started.
TEST_F(DaemonKillTest, AcceptedJobsTrainOnce) {
  Api api(daemon_);
  std::vector<std::string> jobs;
  for (int round = 0; round < rounds_; ++round) {
    jobs.push_back(api.Create(SmallJob({.report_every_steps = 1})).name());
    absl::SleepFor(absl::Milliseconds(Random(0, 80)));
    KillAndLaunch();
    const absl::Status ready = daemon_.WaitUntilReady();
    ASSERT_TRUE(ready.ok()) << ready;
  }
  for (const std::string& job : jobs) {
    const v1::Job record = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED);
    ASSERT_EQ(record.state(), v1::JOB_STATE_SUCCEEDED) << record.DebugString() << daemon_.Log();
    const std::vector<v1::JobEvent> events = ReadEvents(daemon_, job);
    ExpectWholeLog(events, job);
    const std::vector<int64_t> steps = ReportedSteps(events);
    ASSERT_EQ(steps.size(), 16) << "not each step once";
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], i + 1);
  }
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  auto& flags = tandem::testing::flags;
  return tandem::testing::RunTests(
      argc, argv, {{"rounds", &flags.rounds}, {"seed", &flags.seed}, {"steps", &flags.steps}});
}
