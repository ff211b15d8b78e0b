// Jobs of several workers with the real programs. SIGKILL or SIGSTOP hits one of the workers at a random
// step. The job must end within the watchdog's time and name the rank, and no worker may remain.
//
//   bazel test //tests/fault:lost_worker_test --test_arg=--rounds=20 --test_arg=--seed=7
#include <signal.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fault/flags.h"
#include "tests/fault/mishap_fixture.h"
#include "tests/integration/api.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

// --name=number on the command line.
struct Flags {
  // The number of lost workers. 0: 3, or 20 if $TANDEM_WHOLE is 1.
  int64_t rounds = 0;
  // The seed of the moments, workers and signals. 0: a new seed each time.
  int64_t seed = 0;
} flags;

constexpr absl::Duration kSilenceLimit = absl::Seconds(5);
// Five seconds for the reports of the other workers, five more until they are killed, and a margin for a slow
// and busy machine.
constexpr absl::Duration kSlack = absl::Seconds(60);
constexpr absl::Duration kPatience = absl::Minutes(3);

class LostWorkerTest : public MishapFixture {
 protected:
  explicit LostWorkerTest(absl::Duration silence_limit = kSilenceLimit,
                          absl::Duration collective_time_limit = absl::Minutes(30))
      : MishapFixture(flags.seed, /*cpu_devices=*/2,
                      {"--worker-silence-limit", absl::FormatDuration(silence_limit),
                       "--collective-time-limit", absl::FormatDuration(collective_time_limit)}) {}

  // Gives the job two workers, and lets it fail if it loses one. Many buckets make it likely that a worker is
  // lost while others continue.
  static v1::JobSpec TwoWorkers(v1::JobSpec spec) {
    spec.set_max_restarts(0);
    spec.mutable_replicas()->set_count(2);
    spec.mutable_replicas()->set_workers(2);
    spec.mutable_replicas()->mutable_all_reduce()->set_bucket_bytes(1);
    spec.mutable_replicas()->mutable_all_reduce()->set_first_bucket_bytes(1);
    return spec;
  }

  // Waits until the job has trained this number of steps, or has ended.
  v1::Job WaitForStep(const std::string& job, int64_t step) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      v1::Job now = Api(daemon_).Get(job);
      if (now.progress().step() >= step || IsTerminal(now.state())) return now;
      absl::SleepFor(absl::Milliseconds(20));
    }
    ADD_FAILURE() << job << " does not come to step " << step;
    return v1::Job();
  }

  // Waits until the job's lease is free, that is, until all of its workers have exited.
  void WaitUntilNoneIsLeft() {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!daemon_.Workers().empty() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
    EXPECT_TRUE(daemon_.Workers().empty());
  }

  // The process of a job's worker, as its lock says.
  pid_t WorkerPid(const std::string& job, int worker) {
    const std::string lock = absl::StrCat(daemon_.JobFolder(job), "/worker",
                                          worker == 0 ? "" : absl::StrCat("-", worker), ".lock");
    const std::vector<std::string> parts = absl::StrSplit(ReadFile(lock), "pid=");
    int pid = 0;
    EXPECT_TRUE(parts.size() == 2 && absl::SimpleAtoi(parts[1], &pid)) << lock;
    return pid;
  }

  static bool IsLost(const std::string& message, int worker) {
    return absl::StrContains(message, absl::StrCat("rank ", worker, " of 2 (worker ", worker, ")")) ||
           absl::StrContains(message, absl::StrCat("Worker ", worker, " of 2 (rank ", worker, ")"));
  }
};

TEST_F(LostWorkerTest, TwoWorkersTrainLikeOne) {
  Api api(daemon_);
  v1::JobSpec spec = SmallJob({.replicas = 2, .report_every_steps = 1});
  const v1::Job one = api.WaitFor(api.Create(spec).name(), v1::JOB_STATE_SUCCEEDED);
  const v1::Job two = api.WaitFor(api.Create(TwoWorkers(spec)).name(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(two.state(), v1::JOB_STATE_SUCCEEDED) << two.message();
  EXPECT_EQ(two.last_epoch().training().loss(), one.last_epoch().training().loss());
  EXPECT_EQ(two.last_epoch().validation().loss(), one.last_epoch().validation().loss());
  WaitUntilNoneIsLeft();
}

TEST_F(LostWorkerTest, PauseAndGoOn) {
  Api api(daemon_);
  std::string job;
  v1::Job paused;
  // Tries again with more steps if the job ended before the pause.
  for (int64_t steps = 300; steps < 200'000; steps *= 8) {
    job = api.Create(TwoWorkers(LongJob(steps))).name();
    WaitForStep(job, 20);
    (void)api.TryPause(job);
    paused = api.WaitFor(job, v1::JOB_STATE_PAUSED);
    if (paused.state() != v1::JOB_STATE_SUCCEEDED) break;
  }
  ASSERT_EQ(paused.state(), v1::JOB_STATE_PAUSED) << paused.message();
  WaitUntilNoneIsLeft();
  api.Resume(job);
  const v1::Job ended = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED) << ended.message();
  EXPECT_EQ(ended.attempt(), 2);
}

TEST_F(LostWorkerTest, CancelEndsBoth) {
  Api api(daemon_);
  const std::string job = api.Create(TwoWorkers(LongJob(1'000'000))).name();
  WaitForStep(job, 5);
  api.Cancel(job);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED);
  WaitUntilNoneIsLeft();
}

TEST_F(LostWorkerTest, TheDaemonMayDie) {
  Api api(daemon_);
  const std::string job = api.Create(TwoWorkers(LongJob(300))).name();
  WaitForStep(job, 20);
  daemon_.Kill();
  const absl::Status started = daemon_.Start();
  ASSERT_TRUE(started.ok()) << started;
  const v1::Job ended = api.WaitFor(job, v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED) << ended.message();
  EXPECT_EQ(ended.attempt(), 1);
  WaitUntilNoneIsLeft();
}

TEST_F(LostWorkerTest, OneThatIsLostIsNamedInTime) {
  Api api(daemon_);
  const int64_t rounds = Amount(flags.rounds, /*sample=*/3, /*whole=*/20);
  for (int64_t round = 0; round < rounds; ++round) {
    const std::string job = api.Create(TwoWorkers(LongJob(1'000'000))).name();
    WaitForStep(job, Random(1, 60));
    absl::SleepFor(absl::Milliseconds(Random(0, 20)));
    const int victim = Random(0, 1);
    const int signal = Random(0, 1) == 0 ? SIGKILL : SIGSTOP;
    const absl::Time begin = absl::Now();
    ASSERT_EQ(kill(WorkerPid(job, victim), signal), 0);
    const v1::Job ended = api.WaitFor(job, v1::JOB_STATE_FAILED);
    const absl::Duration taken = absl::Now() - begin;
    std::cout << "round " << round << ": signal " << signal << " to worker " << victim << " after step "
              << ended.progress().step() << ": "
              << absl::FormatDuration(absl::Trunc(taken, absl::Milliseconds(1))) << ", " << ended.message()
              << "\n";
    EXPECT_EQ(ended.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(ended.reason(), v1::STATE_REASON_WORKER_LOST) << ended.message();
    EXPECT_TRUE(IsLost(ended.message(), victim)) << ended.message();
    EXPECT_LE(taken, kSilenceLimit + kSlack);
    WaitUntilNoneIsLeft();
    ASSERT_FALSE(HasFailure()) << daemon_.Log();
  }
}

// A worker that misses a collective. A stopped worker is also silent, but this test ignores silence.
class HungWorkerTest : public LostWorkerTest {
 protected:
  // Longer than a worker takes to compile while the other waits for it.
  static constexpr absl::Duration kTimeLimit = absl::Seconds(40);
  HungWorkerTest() : LostWorkerTest(absl::Hours(1), kTimeLimit) {}
};

TEST_F(HungWorkerTest, OneThatHangsIsNamedInTime) {
  Api api(daemon_);
  // Each victim costs the time limit, so a sample has only one.
  const int64_t rounds = Amount(0, /*sample=*/1, /*whole=*/2);
  const int first = Random(0, 1);
  for (int64_t round = 0; round < rounds; ++round) {
    const int victim = round == 0 ? first : 1 - first;
    const std::string job = api.Create(TwoWorkers(LongJob(1'000'000))).name();
    WaitForStep(job, 5);
    ASSERT_EQ(api.Get(job).state(), v1::JOB_STATE_RUNNING);
    const absl::Time begin = absl::Now();
    ASSERT_EQ(kill(WorkerPid(job, victim), SIGSTOP), 0);
    const v1::Job ended = api.WaitFor(job, v1::JOB_STATE_FAILED);
    EXPECT_EQ(ended.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(ended.reason(), v1::STATE_REASON_WORKER_LOST);
    EXPECT_TRUE(IsLost(ended.message(), victim)) << ended.message();
    EXPECT_THAT(ended.message(), HasSubstr("has not come to a call within 40s"));
    EXPECT_LE(absl::Now() - begin, kTimeLimit + kSlack);
    WaitUntilNoneIsLeft();
    ASSERT_FALSE(HasFailure()) << daemon_.Log();
  }
}

TEST_F(LostWorkerTest, WhatCannotBeShared) {
  Api api(daemon_);
  v1::JobSpec spec = SmallJob({.replicas = 2});
  spec.mutable_replicas()->set_workers(3);
  EXPECT_THAT(api.TryCreate(spec).error_message(), HasSubstr("replicas.workers"));
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  auto& flags = tandem::testing::flags;
  return tandem::testing::RunTests(argc, argv, {{"rounds", &flags.rounds}, {"seed", &flags.seed}});
}
