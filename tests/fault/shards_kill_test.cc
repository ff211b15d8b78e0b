// Packs pictures into shards, trains on them, and kills the job's workers in the middle of epochs, sometimes
// together with the daemon. The job must end with the bits of an uninterrupted job.
//
//   bazel test //tests/fault:shards_kill_test --test_arg=--kills=20 --test_arg=--seed=7
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

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
#include "tests/integration/png_file.h"
#include "tests/integration/processes.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

struct Flags {
  int64_t kills = 3;
  // The seed of the moments. 0: a new seed each time.
  int64_t seed = 0;
} flags;

constexpr absl::Duration kPatience = absl::Minutes(5);
constexpr int kSide = 28;
constexpr int kClasses = 4;
constexpr int kPictures = 400;
constexpr int64_t kBatch = 8;
constexpr int64_t kStepsOfEpoch = kPictures / kBatch;

class ShardsKillTest : public MishapFixture {
 protected:
  ShardsKillTest() : MishapFixture(flags.seed, /*cpu_devices=*/3, {"--data-folder", "/tmp"}) {}

  // Writes pictures of random pixels around a value of their class, then packs them into shards.
  void SetUp() override {
    MishapFixture::SetUp();
    if (HasFatalFailure()) return;
    for (int i = 0; i < kPictures; ++i) {
      const std::string folder = scratch_.File(absl::StrCat("pictures/class", i % kClasses));
      std::filesystem::create_directories(folder);
      std::string pixels;
      for (int p = 0; p < kSide * kSide; ++p) {
        pixels.push_back(static_cast<char>(i % kClasses * 50 + Random(0, 50)));
      }
      std::ofstream(absl::StrCat(folder, "/", i, ".png"), std::ios::binary)
          << PngFile(kSide, kSide, 1, pixels);
    }
    // A sample takes at least 2,048 bytes, so there are at least 20 shards. No batch's end is a shard's end.
    const CliResult packed = cli_.Run(
        {"datasets", "pack", scratch_.File("pictures"), scratch_.File("shards"), "--shard-size", "40000"});
    ASSERT_EQ(packed.exit_code, 0) << packed;
    EXPECT_THAT(packed.out, HasSubstr("packed 400 training and 0 validation pictures of 4 classes"));
  }

  v1::JobSpec Job(int64_t steps, int replicas = 2, int workers = 1) const {
    v1::JobSpec spec = LongJob(steps);
    spec.mutable_dataset()->Clear();
    v1::WebDatasetSource& source = *spec.mutable_dataset()->mutable_webdataset();
    source.set_train(scratch_.File("shards"));
    source.set_shuffle_buffer(30);
    spec.mutable_dataset()->add_augmentation()->mutable_horizontal_flip();
    spec.mutable_training()->set_global_batch_size(kBatch);
    spec.mutable_training()->set_epochs(std::max<int64_t>(1, steps / kStepsOfEpoch));
    spec.mutable_training()->mutable_optimizer()->mutable_momentum()->set_learning_rate(0.01);
    spec.mutable_replicas()->set_count(replicas);
    spec.mutable_replicas()->set_workers(workers);
    // Most checkpoints are in the middle of an epoch and of a shard.
    spec.mutable_checkpoints()->set_every_steps(7);
    spec.set_max_restarts(100);
    return spec;
  }

  // Kills all workers of the job in the middle of an epoch, as often as the flag says. Kills the daemon
  // before every second time. Returns the job after its end.
  v1::Job TrainWithKills(const v1::JobSpec& spec, int64_t* kills) {
    Api api(daemon_);
    const std::string job = api.Create(spec).name();
    int32_t attempt = 0;
    for (*kills = 0; *kills < flags.kills; ++*kills) {
      const int64_t step = api.Get(job).last_checkpoint().step() + Random(10, 60);
      v1::Job now;
      const auto is_there = [&] {
        now = api.Get(job);
        return IsTerminal(now.state()) ||
               (now.attempt() > attempt && now.state() == v1::JOB_STATE_RUNNING &&
                now.progress().step() >= step && now.progress().step() % kStepsOfEpoch != 0 &&
                now.last_checkpoint().step() % kStepsOfEpoch != 0);
      };
      EXPECT_TRUE(WaitUntil(is_there, kPatience)) << daemon_.Log();
      if (IsTerminal(now.state())) break;
      attempt = now.attempt();
      const bool kills_daemon = *kills % 2 == 1;
      if (kills_daemon) daemon_.Kill();
      for (const pid_t worker : daemon_.Workers()) kill(worker, SIGKILL);
      if (!kills_daemon) continue;
      const absl::Status ready = daemon_.Start();
      EXPECT_TRUE(ready.ok()) << ready;
    }
    return api.WaitFor(job, v1::JOB_STATE_SUCCEEDED, kPatience);
  }

  // Expects that a job whose workers are killed ends with the bits of an uninterrupted job.
  void ExpectTheSameBits(int replicas, int workers) {
    Api api(daemon_);
    v1::JobSpec spec;
    v1::Job killed;
    int64_t kills = 0;
    // Tries again with more steps if the job ended before all kills.
    for (int64_t steps = 1000; steps < 100'000; steps *= 4) {
      spec = Job(steps, replicas, workers);
      killed = TrainWithKills(spec, &kills);
      ASSERT_EQ(killed.state(), v1::JOB_STATE_SUCCEEDED) << killed.ShortDebugString() << daemon_.Log();
      if (kills == flags.kills) break;
    }
    ASSERT_EQ(kills, flags.kills);
    EXPECT_EQ(killed.attempt(), kills + 1);
    const std::string whole = api.CreateAndAwait(spec, v1::JOB_STATE_SUCCEEDED, kPatience);
    ASSERT_FALSE(ModelOf(whole).empty());
    EXPECT_EQ(ModelOf(killed.name()), ModelOf(whole));
    std::cout << replicas << " replicas in " << workers << " workers: " << kills << " kills in mid-epoch, "
              << killed.attempt() << " attempts, " << killed.summary().steps() << " steps\n";
  }
};

TEST_F(ShardsKillTest, AReplicaGoesOnInMidEpochToTheSameBits) {
  ExpectTheSameBits(/*replicas=*/1, /*workers=*/1);
}

TEST_F(ShardsKillTest, ReplicasGoOnInMidEpochToTheSameBits) {
  ExpectTheSameBits(/*replicas=*/2, /*workers=*/1);
}

TEST_F(ShardsKillTest, ReplicasInProcessesOfTheirOwnGoOnInMidEpochToTheSameBits) {
  ExpectTheSameBits(/*replicas=*/3, /*workers=*/3);
}

// A shard that is damaged while the job trains ends the job with the shard's name.
TEST_F(ShardsKillTest, AShardThatDisappearsEndsTheJobByName) {
  Api api(daemon_);
  const std::string job = api.Create(Job(1'000'000)).name();
  ASSERT_TRUE(WaitUntil([&] { return api.Get(job).progress().step() > 0; }, kPatience)) << daemon_.Log();
  std::filesystem::remove(scratch_.File("shards/train-000003.tar"));
  const v1::Job failed = api.WaitFor(job, v1::JOB_STATE_FAILED, kPatience);
  EXPECT_EQ(failed.state(), v1::JOB_STATE_FAILED) << daemon_.Log();
  EXPECT_THAT(failed.message(), HasSubstr("cannot read samples: "));
  EXPECT_THAT(failed.message(), HasSubstr("train-000003.tar does not exist"));
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  auto& flags = tandem::testing::flags;
  return tandem::testing::RunTests(argc, argv, {{"kills", &flags.kills}, {"seed", &flags.seed}});
}
