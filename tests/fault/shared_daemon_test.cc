// Four users with their own tokens submit small jobs to two CPU devices. Meanwhile jobs are cancelled, paused
// and get other priorities, and workers are killed at random moments. Every job must end as expected, users
// must get equal shares of the devices' time, and nothing may be left over.
//
//   bazel test //tests/fault:shared_daemon_test --test_arg=--jobs=200 --test_arg=--seed=7
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/fault/flags.h"
#include "tests/fault/mishap_fixture.h"
#include "tests/integration/api.h"
#include "tests/integration/holdings.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"

namespace tandem::testing {
namespace {

// --name=number on the command line.
struct Flags {
  // The number of jobs of all users together. 0: 24, or 200 if $TANDEM_WHOLE is 1.
  int64_t jobs = 0;
  // The seed of all disturbances. 0: a new seed each time.
  int64_t seed = 0;
} flags;

constexpr int kUsers = 4;
constexpr absl::Duration kPatience = absl::Minutes(40);
constexpr int kFirstJobs = 20;
// Bytes that the daemon may hold more than before: caches of the allocator and of the database.
constexpr int64_t kMemorySlack = 64 << 20;

class SharedDaemonTest : public MishapFixture {
 protected:
  // Turns off automatic backups: a minute after the start, a backup would open a connection, and SQLite keeps
  // a file of this connection.
  SharedDaemonTest() : MishapFixture(flags.seed, /*cpu_devices=*/2, {"--backup-every=0s"}) {
    flags.jobs = Amount(flags.jobs, /*sample=*/24, /*whole=*/200);
  }

  v1::JobSpec NextJob() {
    v1::JobSpec spec =
        SmallJob({.epochs = 40, .train_samples = 4096, .seed = static_cast<uint64_t>(Random(1, 1000))});
    spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);
    spec.set_preemptible(Random(0, 1) == 1);
    // The test itself resumes the job.
    spec.set_max_restarts(0);
    return spec;
  }

  // Returns a job that can still take a command.
  std::string AnyOf(const std::vector<v1::Job>& jobs, const std::set<v1::JobState>& states) {
    std::vector<std::string> names;
    for (const v1::Job& job : jobs) {
      if (states.count(job.state()) > 0) names.push_back(job.name());
    }
    return names.empty() ? "" : names[Random(0, static_cast<int>(names.size()) - 1)];
  }

  // Disturbs a user's job or a worker. A disturbance that is no longer possible is not an error.
  void Disturb(const std::vector<v1::Job>& jobs) {
    const auto pick = [&](std::set<v1::JobState> states) { return AnyOf(jobs, states); };
    switch (Random(0, 4)) {
      case 0:
        if (cancelled_.size() >= static_cast<size_t>(flags.jobs) / 10) break;
        if (const std::string job = pick({v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING}); !job.empty()) {
          if (admin_->TryCancel(job).ok()) cancelled_.insert(job);
        }
        break;
      case 1:
        if (const std::string job = pick({v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING}); !job.empty()) {
          if (admin_->TryPause(job).ok()) ++pauses_;
        }
        break;
      case 2:
        // Changes priorities only for a while: they must not change the users' shares.
        if (const std::string job = pick({v1::JOB_STATE_QUEUED}); !job.empty()) {
          if (admin_->TrySetPriority(job, Random(-1, 1)).ok()) ++priorities_;
        }
        break;
      case 3:
        if (const std::vector<pid_t> workers = daemon_.Workers();
            !workers.empty() && kills_ < flags.jobs / 10) {
          if (kill(workers[Random(0, static_cast<int>(workers.size()) - 1)], SIGKILL) == 0) ++kills_;
        }
        break;
      default:
        break;
    }
  }

  // Resumes paused and lost jobs.
  void LetGoOn(const std::vector<v1::Job>& jobs) {
    for (const v1::Job& job : jobs) {
      const bool lost = job.state() == v1::JOB_STATE_FAILED && job.reason() == v1::STATE_REASON_WORKER_LOST;
      if (job.state() == v1::JOB_STATE_PAUSED || lost) admin_->TryResume(job.name());
    }
  }

  // Measures the users' shares while all of them have waiting jobs.
  void Measure() {
    const v1::ListQueueResponse queue = admin_->Queue();
    for (const v1::QueuedJob& job : queue.jobs()) {
      EXPECT_NE(job.waiting().reason(), v1::Waiting::REASON_UNSPECIFIED) << job.ShortDebugString();
      EXPECT_FALSE(job.waiting().message().empty()) << job.ShortDebugString();
    }
    // Users with jobs of lower priority only must wait for others, so they do not count.
    std::set<std::string> waiting;
    for (const v1::QueuedJob& job : queue.jobs()) {
      if (job.priority() + job.raised_by() >= 0) waiting.insert(job.user());
    }
    std::map<std::string, double> seconds;
    for (const v1::UserUsage& user : queue.users()) {
      if (absl::StartsWith(user.user(), "user-")) seconds[user.user()] = user.device_seconds();
    }
    if (waiting.size() == kUsers) seconds_ = seconds;
  }

  // The furthest that a user was from a fair part, as a part of that.
  double WorstShare() const {
    double all = 0;
    for (const auto& [user, seconds] : seconds_) all += seconds;
    double worst = 0;
    for (const auto& [user, seconds] : seconds_) {
      std::cout << "  " << user << ": " << seconds << " device-seconds\n";
      worst = std::max(worst, std::abs(seconds / (all / kUsers) - 1));
    }
    return worst;
  }

  std::unique_ptr<Api> admin_;
  std::set<std::string> cancelled_;
  std::map<std::string, double> seconds_;
  int pauses_ = 0;
  int priorities_ = 0;
  int kills_ = 0;
};

TEST_F(SharedDaemonTest, AllEndWellGetFairSharesAndLeaveNothing) {
  admin_ = std::make_unique<Api>(daemon_);
  std::vector<std::unique_ptr<Api>> users;
  for (int user = 0; user < kUsers; ++user) {
    users.push_back(std::make_unique<Api>(daemon_, admin_->MakeToken(absl::StrCat("user-", user))));
  }
  // Runs some jobs first, so that all connections, threads and the allocator's caches exist before the
  // measurement. With the address sanitizer, the first fourteen jobs take 230 MB, and each later job half a
  // MB.
  for (int i = 0; i < kFirstJobs; ++i) admin_->Create(NextJob());
  for (const v1::Job& job : admin_->List()) {
    ASSERT_EQ(admin_->WaitFor(job.name(), v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED);
    admin_->Delete(job.name());
  }
  ASSERT_TRUE(WaitUntil([&] { return daemon_.Workers().empty(); }));
  for (const auto& user : users) user->List();
  const Holdings before = HoldingsOf(daemon_.pid());

  // Interleaves the users: by age alone, the last user would wait for all others.
  std::map<std::string, std::string> owners;
  for (int i = 0; i < flags.jobs; ++i) {
    const int user = static_cast<int>(i * kUsers / flags.jobs);
    const v1::Job job = users[user]->Create(NextJob());
    EXPECT_EQ(job.user(), absl::StrCat("user-", user));
    owners[job.name()] = job.user();
  }
  const absl::Time deadline = absl::Now() + kPatience;
  std::vector<v1::Job> jobs;
  const auto is_over = [&] {
    jobs = admin_->List();
    return std::all_of(jobs.begin(), jobs.end(), [](const v1::Job& job) {
      return job.state() == v1::JOB_STATE_SUCCEEDED || job.state() == v1::JOB_STATE_CANCELLED;
    });
  };
  while (!is_over() && absl::Now() < deadline && !HasFailure()) {
    Measure();
    Disturb(jobs);
    LetGoOn(jobs);
    absl::SleepFor(absl::Milliseconds(Random(50, 400)));
  }
  ASSERT_TRUE(is_over()) << daemon_.Log();
  ASSERT_EQ(jobs.size(), owners.size());
  int succeeded = 0;
  for (const v1::Job& job : jobs) {
    EXPECT_EQ(job.user(), owners[job.name()]);
    const bool was_cancelled = cancelled_.count(job.name()) > 0;
    EXPECT_EQ(job.state(), was_cancelled ? v1::JOB_STATE_CANCELLED : v1::JOB_STATE_SUCCEEDED)
        << job.ShortDebugString();
    if (job.state() == v1::JOB_STATE_SUCCEEDED) {
      ++succeeded;
      EXPECT_EQ(job.summary().epochs(), 40) << job.ShortDebugString();
    }
  }
  std::cout << succeeded << " succeeded, " << cancelled_.size() << " cancelled; " << pauses_ << " pauses, "
            << priorities_ << " changes of priority, " << kills_ << " workers killed\n";
  const double worst = WorstShare();
  std::cout << "furthest from a fair share: " << 100 * worst << " %\n";
  // A few jobs are too few to come out even.
  if (flags.jobs >= 200) {
    EXPECT_LE(worst, 0.1);
  }

  // A job has ended before its worker has.
  EXPECT_TRUE(WaitUntil([&] {
    const auto devices = admin_->Devices();
    return std::all_of(devices.begin(), devices.end(),
                       [](const v1::Device& device) { return device.jobs_size() == 0; });
  })) << "devices are left to jobs that have ended";
  for (const v1::Job& job : jobs) admin_->Delete(job.name());
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Processes().size() == 1; })) << "processes are left";
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::is_empty(daemon_.state_folder() + "/jobs"); }))
      << "folders of jobs are left";
  EXPECT_TRUE(WaitUntil([&] { return HoldingsOf(daemon_.pid()).files <= before.files; }))
      << "more files are open than before:\n"
      << absl::StrJoin(before.targets, " ") << "\n"
      << absl::StrJoin(HoldingsOf(daemon_.pid()).targets, " ");
  const Holdings after = HoldingsOf(daemon_.pid());
  std::cout << "before: " << before.files << " files, " << before.sockets << " of them sockets, "
            << before.memory_bytes / 1e6 << " MB; after: " << after.files << ", " << after.sockets << ", "
            << after.memory_bytes / 1e6 << " MB\n";
  EXPECT_LE(after.sockets, before.sockets);
  EXPECT_LE(after.memory_bytes, before.memory_bytes + kMemorySlack);
  EXPECT_EQ(daemon_.Terminate(), 0);
  EXPECT_TRUE(daemon_.Processes().empty());
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  auto& flags = tandem::testing::flags;
  return tandem::testing::RunTests(argc, argv, {{"jobs", &flags.jobs}, {"seed", &flags.seed}});
}
