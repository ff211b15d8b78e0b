// Jobs that are paused, or lose their workers, and continue to the same weights. With the real programs.
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/watcher.h"

namespace tandem::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Minutes(3);

// The largest number of steps to try, if jobs end before they can be stopped.
constexpr int64_t kMostSteps = 200'000;

// Returns a job with epochs of a hundred steps on two replicas, and an optimizer with state. It does not
// restart by itself.
v1::JobSpec Job(int64_t steps) {
  v1::JobSpec spec = LongJob(steps);
  spec.set_max_restarts(0);
  spec.mutable_training()->mutable_optimizer()->mutable_momentum()->set_learning_rate(0.01);
  spec.mutable_replicas()->set_count(2);
  return spec;
}

class ResumeTest : public DaemonFixture {
 protected:
  // Returns the model of an uninterrupted job.
  std::string UninterruptedModel(int64_t steps) {
    Api api(daemon_);
    return ModelOf(api.CreateAndAwait(Job(steps), v1::JOB_STATE_SUCCEEDED));
  }

  struct Stopped {
    v1::Job job;
    int64_t steps = 0;  // The job's planned steps.
  };
  // Brings a job to this state by `stop`, which gets its name, after more than 150 steps, with a checkpoint
  // and before its end. The necessary number of steps depends on the machine, so this tries again with more
  // steps if the job ended before.
  template <typename Stop>
  Stopped StopInTheMiddle(v1::JobState state, const Stop& stop) {
    Api api(daemon_);
    Stopped stopped;
    for (stopped.steps = 2000; stopped.steps <= kMostSteps; stopped.steps *= 4) {
      const std::string name = api.Create(Job(stopped.steps)).name();
      const auto is_in_the_middle = [&] {
        const v1::Job job = api.Get(name);
        return IsTerminal(job.state()) || (job.progress().step() > 150 && job.last_checkpoint().step() > 0);
      };
      EXPECT_TRUE(WaitUntil(is_in_the_middle, kPatience)) << daemon_.Log();
      stop(name);
      stopped.job = api.WaitFor(name, state);
      if (stopped.job.state() != v1::JOB_STATE_SUCCEEDED) break;
    }
    EXPECT_EQ(stopped.job.state(), state) << stopped.job.DebugString();
    return stopped;
  }

  static std::vector<v1::JobState> StatesOf(const std::vector<v1::JobEvent>& events) {
    std::vector<v1::JobState> states;
    for (const v1::JobEvent& event : events) {
      if (event.has_state_change()) states.push_back(event.state_change().to());
    }
    return states;
  }
};

TEST_F(ResumeTest, APausedJobGivesItsDevicesAndEndsWithTheSameWeights) {
  Api api(daemon_);
  CliResult pause;
  const auto [found, steps] = StopInTheMiddle(v1::JOB_STATE_PAUSED, [&](const std::string& name) {
    pause = cli_.Run({"pause", name});
  });
  v1::Job paused = found;
  ASSERT_EQ(paused.state(), v1::JOB_STATE_PAUSED);
  const std::string job = paused.name();
  EXPECT_EQ(pause.exit_code, 0) << pause;
  EXPECT_THAT(pause.out, HasSubstr("pausing"));
  Watcher watcher(daemon_, job);
  EXPECT_EQ(paused.reason(), v1::STATE_REASON_PAUSE_REQUESTED);
  EXPECT_FALSE(paused.has_end_time());
  const int64_t step = paused.summary().steps();
  EXPECT_GT(step, 150);
  EXPECT_EQ(paused.last_checkpoint().step(), step);
  EXPECT_EQ(paused.summary().checkpoint_step(), step);
  EXPECT_TRUE(WaitUntil([&] {
    return std::ranges::all_of(api.Devices(), [](const v1::Device& device) { return device.job().empty(); });
  })) << daemon_.Log();
  EXPECT_TRUE(daemon_.Workers().empty());

  // Others use them meanwhile; and the daemon may come and go.
  const std::string expected = UninterruptedModel(steps);
  daemon_.Kill();
  ASSERT_TRUE(daemon_.Start().ok());
  paused = api.Get(job);
  EXPECT_EQ(paused.state(), v1::JOB_STATE_PAUSED);
  EXPECT_FALSE(watcher.ended());

  const CliResult resume = cli_.Run({"resume", job});
  EXPECT_EQ(resume.exit_code, 0) << resume;
  const v1::Job done = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(done.state(), v1::JOB_STATE_SUCCEEDED) << done.DebugString() << daemon_.Log();
  EXPECT_EQ(done.attempt(), 2);
  EXPECT_EQ(done.summary().steps(), steps);
  EXPECT_EQ(done.summary().epochs(), steps / 100);
  EXPECT_GT(done.summary().images_per_second(), 0);
  EXPECT_EQ(ModelOf(job), expected);

  ASSERT_TRUE(watcher.WaitForEnd(kPatience));
  const std::vector<v1::JobEvent> events = watcher.events();
  ExpectWholeLog(events, job);
  EXPECT_THAT(StatesOf(events),
              ElementsAre(v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING,
                          v1::JOB_STATE_PAUSING, v1::JOB_STATE_PAUSED, v1::JOB_STATE_QUEUED,
                          v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED));
  // Every step was reported once.
  int64_t next = 1;
  for (const v1::JobEvent& event : events) {
    if (!event.has_progress()) continue;
    EXPECT_EQ(event.progress().step(), next);
    ++next;
  }
  EXPECT_EQ(next, steps + 1);

  const CliResult describe = cli_.Run({"describe", job});
  EXPECT_THAT(describe.out, HasSubstr(" steps in "));
  EXPECT_THAT(describe.out, HasSubstr("best"));
}

TEST_F(ResumeTest, AJobWhoseWorkerIsKilledGoesOnFromItsLastCheckpoint) {
  Api api(daemon_);
  const auto [failed, steps] = StopInTheMiddle(v1::JOB_STATE_FAILED, [&](const std::string&) {
    for (const pid_t worker : daemon_.Workers()) kill(worker, SIGKILL);
  });
  ASSERT_EQ(failed.state(), v1::JOB_STATE_FAILED);
  const std::string job = failed.name();
  const std::string expected = UninterruptedModel(steps);
  EXPECT_EQ(failed.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(failed.last_checkpoint().step() % 100, 0);
  // The log has ended for now.
  std::vector<v1::JobEvent> events = ReadEvents(daemon_, job);
  ExpectWholeLog(events, job);

  const v1::Job resumed = api.Resume(job);
  EXPECT_EQ(resumed.reason(), v1::STATE_REASON_RESUMED);
  // The worker may have written a checkpoint that it had no time to report.
  const int64_t reported = failed.last_checkpoint().step();
  EXPECT_THAT(resumed.message(), AnyOf(HasSubstr(absl::StrCat("of step ", reported, ".")),
                                       HasSubstr(absl::StrCat("of step ", reported + 100, "."))));
  EXPECT_FALSE(resumed.has_end_time());
  const v1::Job done = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(done.state(), v1::JOB_STATE_SUCCEEDED) << done.DebugString() << daemon_.Log();
  EXPECT_EQ(done.attempt(), 2);
  EXPECT_EQ(ModelOf(job), expected);

  // A single log, with a terminal event in the middle.
  events = ReadEvents(daemon_, job);
  ASSERT_EQ(static_cast<int64_t>(events.size()), done.last_sequence());
  int terminal = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i + 1));
    terminal += events[i].terminal() ? 1 : 0;
  }
  EXPECT_EQ(terminal, 2);
  EXPECT_TRUE(events.back().terminal());
  EXPECT_EQ(events.back().attempt(), 2);
  EXPECT_EQ(api.TryResume(job).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  const CliResult watch = cli_.Run({"watch", job});
  EXPECT_EQ(watch.exit_code, 0) << watch;
  EXPECT_THAT(watch.out, HasSubstr("continue from its last checkpoint with: tandem resume"));
  EXPECT_THAT(watch.out, HasSubstr("succeeded after"));
}

TEST_F(ResumeTest, AWaitingJobCanBePausedAndAPausedOneCancelled) {
  Api api(daemon_);
  const std::string busy = api.Create(LongJob(1'000'000)).name();
  const std::string waiting = api.Create(Job(1'000'000)).name();
  EXPECT_EQ(api.Pause(waiting).state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(api.Pause(waiting).state(), v1::JOB_STATE_PAUSED);
  api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  api.Cancel(busy);
  EXPECT_EQ(api.WaitFor(busy, v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED);
  // Though there is room now.
  EXPECT_EQ(api.Get(waiting).state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(api.Resume(waiting).state(), v1::JOB_STATE_QUEUED);
  EXPECT_NE(api.WaitFor(waiting, v1::JOB_STATE_RUNNING).state(), v1::JOB_STATE_PAUSED);
  api.Pause(waiting);
  EXPECT_EQ(api.WaitFor(waiting, v1::JOB_STATE_PAUSED).state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(api.Cancel(waiting).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(api.TryResume(waiting).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ResumeTest, AJobThatStopsEarlySucceedsAndSaysWhy) {
  Api api(daemon_);
  v1::JobSpec spec = SmallJob({.epochs = 1000});
  v1::EarlyStopping& stopping = *spec.mutable_training()->mutable_early_stopping();
  stopping.set_patience(2);
  stopping.set_min_delta(100);
  spec.mutable_training()->mutable_best_model();
  const std::string job = api.Create(spec).name();
  const v1::Job done = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(done.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(done.reason(), v1::STATE_REASON_NO_IMPROVEMENT);
  EXPECT_THAT(done.message(), HasSubstr("The loss has not improved in the last 2 measurements"));
  EXPECT_EQ(done.summary().epochs(), 3);
  EXPECT_TRUE(std::ranges::any_of(done.artifacts(), [](const v1::Artifact& artifact) {
    return artifact.name() == "best.safetensors" && artifact.size_bytes() > 0;
  })) << done.DebugString();
  const CliResult watch = cli_.Run({"watch", job});
  EXPECT_THAT(watch.out, HasSubstr("stopped early: The loss has not improved"));
  EXPECT_THAT(watch.out, HasSubstr("trained 3 epochs, "));
}

}  // namespace
}  // namespace tandem::testing
