// Sends SIGKILL to a job's workers and to the daemon at random moments, with dropout and augmentation, in
// both averaging modes. The job must continue by itself and end with the bits of an uninterrupted job. Also
// tests checkpoints that are kept, damaged, and used as a start.
//
//   bazel test //tests/fault:restart_test --test_arg=--kills=20 --test_arg=--seed=7
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fault/flags.h"
#include "tests/fault/mishap_fixture.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/watcher.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --name=number on the command line.
struct Flags {
  // The number of kills of each job's worker, or of the daemon. 0: 3, or 100 if $TANDEM_WHOLE is 1.
  int64_t kills = 0;
  // The seed of the moments. 0: a new seed each time.
  int64_t seed = 0;
} flags;

constexpr absl::Duration kPatience = absl::Minutes(5);

class RestartTest : public MishapFixture {
 protected:
  RestartTest() : MishapFixture(flags.seed, /*cpu_devices=*/2) {}

  // A hundred steps an epoch of a few milliseconds each, on two replicas, with all that is random.
  static v1::JobSpec Job(int64_t steps, bool averaging, int workers = 1) {
    v1::JobSpec spec = LongJob(steps);
    spec.mutable_dataset()->add_augmentation()->mutable_horizontal_flip();
    spec.mutable_model()->add_layers()->mutable_dropout()->set_rate(0.3);
    const int last = spec.model().layers_size() - 1;
    spec.mutable_model()->mutable_layers()->SwapElements(last - 1, last);
    spec.mutable_training()->mutable_optimizer()->mutable_momentum()->set_learning_rate(0.01);
    spec.mutable_replicas()->set_count(2);
    spec.mutable_replicas()->set_workers(workers);
    if (averaging) spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(7);
    spec.mutable_checkpoints()->set_every_steps(25);
    spec.mutable_checkpoints()->set_keep_last(2);
    // Many may come without an epoch between.
    spec.set_max_restarts(100);
    return spec;
  }

  // Waits until a later attempt trains, and has taken this step; or the job has ended.
  bool WaitForAttempt(const std::string& job, int32_t attempt, int64_t step = 0) {
    Api api(daemon_);
    return WaitUntil(
        [&] {
          const v1::Job now = api.Get(job);
          return IsTerminal(now.state()) ||
                 (now.attempt() > attempt && now.state() == v1::JOB_STATE_RUNNING &&
                  now.progress().step() >= step);
        },
        kPatience);
  }

  struct Killed {
    v1::Job job;  // The job after its end.
    std::vector<v1::JobEvent> events;
    int64_t kills = 0;         // Kills before the job's end.
    int64_t daemon_kills = 0;  // Kills of the daemon among them.
  };
  // Trains a job and kills `kills` times: twice a worker of the job, in different attempts, then the daemon,
  // and so on.
  Killed KillNowAndThen(const v1::JobSpec& spec, int64_t kills) {
    Api api(daemon_);
    const std::string job = api.Create(spec).name();
    Watcher watcher(daemon_, job);
    Killed killed;
    for (int32_t attempt = 0; killed.kills < kills; ++killed.kills) {
      // Usually waits for a new checkpoint. A job that never reaches a checkpoint would only wait longer and
      // longer.
      const int64_t step = api.Get(job).last_checkpoint().step() + Random(1, 120);
      const bool trains = WaitForAttempt(job, attempt, step);
      EXPECT_TRUE(trains) << daemon_.Log();
      if (!trains) break;
      absl::SleepFor(absl::Milliseconds(Random(0, 20)));
      const v1::Job now = api.Get(job);
      if (IsTerminal(now.state())) break;
      if (killed.kills % 3 == 2) {
        // The job's workers train on, and the next daemon adopts them.
        attempt = now.attempt() - 1;
        daemon_.Kill();
        EXPECT_TRUE(daemon_.Launch().ok());
        const absl::Status ready = daemon_.WaitUntilReady();
        EXPECT_TRUE(ready.ok()) << ready;
        if (!ready.ok()) break;
        ++killed.daemon_kills;
        continue;
      }
      attempt = now.attempt();
      // Kills a random worker.
      const std::vector<pid_t> processes = daemon_.Workers();
      if (!processes.empty()) kill(processes[Random(0, static_cast<int>(processes.size()) - 1)], SIGKILL);
    }
    EXPECT_TRUE(watcher.WaitForEnd(kPatience)) << daemon_.Log();
    killed.job = api.Get(job);
    killed.events = watcher.events();
    return killed;
  }

  // Kills this job's workers. Expects the model of an uninterrupted job.
  void ExpectTheSameBits(bool averaging, int workers) {
    Api api(daemon_);
    const int64_t kills = Amount(flags.kills, /*sample=*/3, /*whole=*/100);
    v1::JobSpec spec;
    Killed killed;
    // Again with more steps where all was over before a worker could be killed.
    for (int64_t steps = std::max<int64_t>(300, 100 * kills); steps < 200'000 && killed.job.attempt() <= 1;
         steps *= 8) {
      spec = Job(steps, averaging, workers);
      killed = KillNowAndThen(spec, kills);
      ASSERT_EQ(killed.job.state(), v1::JOB_STATE_SUCCEEDED) << killed.job.ShortDebugString();
    }
    const std::string job = killed.job.name();
    const std::string whole = api.CreateAndAwait(spec, v1::JOB_STATE_SUCCEEDED, kPatience);
    EXPECT_EQ(ModelOf(job), ModelOf(whole));
    // A single log, without a terminal event before its end.
    ExpectWholeLog(killed.events, job);
    int restarts = 0;
    for (const v1::JobEvent& event : killed.events) {
      if (event.state_change().reason() != v1::STATE_REASON_RESTARTING) continue;
      ++restarts;
      EXPECT_EQ(event.state_change().to(), v1::JOB_STATE_QUEUED);
      EXPECT_THAT(event.state_change().message(), HasSubstr("It starts again in "));
    }
    // A worker that had reported its end needs no restart.
    EXPECT_GE(restarts, 1);
    EXPECT_LE(restarts, killed.kills - killed.daemon_kills);
    EXPECT_EQ(killed.job.attempt(), restarts + 1);
    std::cout << killed.kills << " kills, " << killed.daemon_kills << " of them of the daemon; " << restarts
              << " restarts, " << killed.events.size() << " events\n";
  }

  // A paused job with two checkpoints, which has this spec.
  v1::Job PauseWithTwoCheckpoints(v1::JobSpec* spec) {
    Api api(daemon_);
    v1::Job paused;
    // Again with more steps where it had ended before.
    for (int64_t steps = 300; steps < 200'000; steps *= 8) {
      *spec = Job(steps, /*averaging=*/false);
      const std::string job = api.Create(*spec).name();
      const auto has_two = [&] {
        return api.Checkpoints(job).size() == 2 || IsTerminal(api.Get(job).state());
      };
      EXPECT_TRUE(WaitUntil(has_two, kPatience)) << daemon_.Log();
      (void)api.TryPause(job);
      paused = api.WaitFor(job, v1::JOB_STATE_PAUSED);
      if (paused.state() != v1::JOB_STATE_SUCCEEDED) break;
    }
    EXPECT_EQ(paused.state(), v1::JOB_STATE_PAUSED) << paused.ShortDebugString();
    return paused;
  }
};

// Each job has its own daemon, so that failures do not affect each other.
TEST_F(RestartTest, AJobGoesOnByItselfToTheSameBits) {
  ExpectTheSameBits(/*averaging=*/false, /*workers=*/1);
}

TEST_F(RestartTest, AJobThatAveragesParametersGoesOnToTheSameBits) {
  ExpectTheSameBits(/*averaging=*/true, /*workers=*/1);
}

TEST_F(RestartTest, AJobOfTwoWorkersGoesOnToTheSameBits) {
  ExpectTheSameBits(/*averaging=*/false, /*workers=*/2);
}

TEST_F(RestartTest, TheDelayOutlivesTheDaemon) {
  Api api(daemon_);
  v1::JobSpec spec = Job(1'000'000, /*averaging=*/false);
  // With none between, each delay is twice as long; the third is four seconds.
  spec.mutable_checkpoints()->clear_every_steps();
  spec.mutable_checkpoints()->set_every_epochs(1'000'000);
  const std::string job = api.Create(spec).name();
  v1::Job before;
  std::string queue, described;
  // Waits until a delay is long enough to be observed.
  for (int32_t restarts = 1, attempt = 0; restarts < 8; ++restarts) {
    ASSERT_TRUE(WaitForAttempt(job, attempt));
    attempt = api.Get(job).attempt();
    for (const pid_t worker : daemon_.Workers()) kill(worker, SIGKILL);
    ASSERT_TRUE(WaitUntil([&] { return api.Get(job).restarts() == restarts; }, kPatience));
    if (restarts >= 3) {
      queue = cli_.Run({"queue"}).out;
      described = cli_.Run({"describe", job}).out;
    }
    before = api.Get(job);
    if (restarts >= 3 && before.state() == v1::JOB_STATE_QUEUED) break;
  }
  ASSERT_EQ(before.state(), v1::JOB_STATE_QUEUED) << before.ShortDebugString();
  EXPECT_THAT(queue, HasSubstr("Its worker was lost; it starts again in "));
  EXPECT_THAT(described,
              HasSubstr(absl::StrCat(before.restarts(), " of 100 since a checkpoint last had a new epoch")));
  daemon_.Kill();
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  const v1::Job after = api.Get(job);
  if (after.state() == v1::JOB_STATE_QUEUED) {
    EXPECT_EQ(after.restart_time().seconds(), before.restart_time().seconds());
  }
  ASSERT_TRUE(WaitForAttempt(job, before.attempt()));
  EXPECT_EQ(api.Get(job).attempt(), before.attempt() + 1);
  EXPECT_FALSE(api.Get(job).has_restart_time());
  api.Cancel(job);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(RestartTest, ADamagedCheckpointIsPassedBy) {
  Api api(daemon_);
  v1::JobSpec spec;
  const v1::Job paused = PauseWithTwoCheckpoints(&spec);
  ASSERT_EQ(paused.state(), v1::JOB_STATE_PAUSED);
  const std::string job = paused.name();
  const std::vector<int64_t> steps = api.Checkpoints(job);
  ASSERT_EQ(steps.size(), 2);
  {
    std::fstream file(absl::StrCat(daemon_.JobFolder(job), "/checkpoint-", steps[0], ".safetensors"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  api.Resume(job);
  const v1::Job done = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED, kPatience);
  ASSERT_EQ(done.state(), v1::JOB_STATE_SUCCEEDED) << done.ShortDebugString();
  const std::string whole = api.CreateAndAwait(spec, v1::JOB_STATE_SUCCEEDED, kPatience);
  EXPECT_EQ(ModelOf(job), ModelOf(whole));
  std::vector<std::string> notices;
  for (const v1::JobEvent& event : ReadEvents(daemon_, job)) {
    if (event.has_notice()) notices.push_back(event.notice().message());
  }
  EXPECT_THAT(notices,
              Contains(HasSubstr(absl::StrCat("training continues from the checkpoint of step ", steps[1]))));
}

TEST_F(RestartTest, AForkDoesWhatTheOtherJobDid) {
  Api api(daemon_);
  v1::JobSpec spec = Job(200, /*averaging=*/false);
  spec.mutable_checkpoints()->set_every_steps(75);
  spec.mutable_checkpoints()->set_keep_last(3);
  const std::string job = api.CreateAndAwait(spec, v1::JOB_STATE_SUCCEEDED, kPatience);
  EXPECT_THAT(api.Checkpoints(job), ElementsAre(200, 150, 75));
  const CliResult listed = cli_.Run({"checkpoints", job});
  EXPECT_THAT(listed.out, HasSubstr("checkpoint-150.safetensors"));

  // The error names the field that does not fit.
  const CliResult misfit = cli_.Run({"fork", job, "--set", "model.layers[0].conv2d.filters=8"});
  EXPECT_NE(misfit.exit_code, 0) << misfit;
  EXPECT_THAT(misfit.err, HasSubstr("conv2d_1.weight is float32 [20, 1, 5, 5] there"));
  EXPECT_NE(cli_.Run({"fork", job, "--from-checkpoint", "76"}).exit_code, 0);

  const CliResult forked = cli_.Run({"fork", job, "--from-checkpoint", "75"});
  ASSERT_EQ(forked.exit_code, 0) << forked;
  const std::string fork = Cli::SubmittedJob(forked);
  ASSERT_NE(fork, "") << forked;
  v1::JobSpec alone = api.Get(job).spec();
  alone.mutable_replicas()->set_count(1);
  alone.mutable_training()->set_epochs(3);
  const std::string other = api.Fork(job, 150, &alone).name();
  // They have all that they need.
  const std::string model = ModelOf(job);
  api.Delete(job);
  const v1::Job done = api.WaitFor(fork, v1::JOB_STATE_SUCCEEDED, kPatience);
  ASSERT_EQ(done.state(), v1::JOB_STATE_SUCCEEDED) << done.ShortDebugString();
  EXPECT_EQ(done.forked_from().job(), job);
  EXPECT_EQ(done.forked_from().step(), 75);
  EXPECT_EQ(ModelOf(fork), model);
  const v1::Job longer = api.WaitFor(other, v1::JOB_STATE_SUCCEEDED, kPatience);
  EXPECT_EQ(longer.state(), v1::JOB_STATE_SUCCEEDED) << longer.ShortDebugString();
  EXPECT_EQ(longer.summary().steps(), 300);
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  auto& flags = tandem::testing::flags;
  return tandem::testing::RunTests(argc, argv, {{"kills", &flags.kills}, {"seed", &flags.seed}});
}
