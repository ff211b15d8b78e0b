// Tests which checkpoints are kept, and how training handles damaged checkpoints.

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/faulty_env.h"
#include "engine/base/random_access_env.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int64_t> Standing(FaultyEnv* env) {
  std::vector<int64_t> steps;
  const std::vector<std::string> files = *ListCheckpointFiles(env, kFolder);
  for (const std::string& file : files) {
    steps.push_back(*StepOfCheckpointFile(file));
    EXPECT_TRUE(VerifyCheckpoint(env, absl::StrCat(kFolder, "/", file)).ok()) << file;
  }
  return steps;
}

void Damage(FaultyEnv* env, int64_t step) {
  std::string content = *env->ReadFile(CheckpointPath(step));
  content.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(env, CheckpointPath(step), [&](WritableFile& file) {
                return file.Append(content);
              }).ok());
}

TEST(CheckpointsTest, TheNewestAreKept) {
  v1::JobSpec spec = SmallJob(2, "steps: 13");
  spec.mutable_checkpoints()->set_every_steps(2);
  FaultyEnv one;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &one, &recorder).status.ok());
  EXPECT_THAT(recorder.checkpoints, ElementsAre(2, 4, 6, 8, 10, 12, 13));
  EXPECT_THAT(Standing(&one), ElementsAre(13));
  spec.mutable_checkpoints()->set_keep_last(3);
  FaultyEnv three;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &three, &recorder).status.ok());
  EXPECT_THAT(Standing(&three), ElementsAre(13, 12, 10));
  EXPECT_THAT(recorder.notices, IsEmpty());
}

TEST(CheckpointsTest, TheBestIsKept) {
  // The loss falls, so the largest loss is early.
  v1::JobSpec spec =
      SmallJob(2, "best_model { mode: PLATEAU_MODE_MAX keep_weights: true } validation { every_steps: 4 }");
  spec.mutable_checkpoints()->set_every_epochs(2);
  spec.mutable_checkpoints()->set_keep_best(true);
  FaultyEnv env;
  Recorder recorder;
  const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  const int64_t best = result.summary.best().step();
  ASSERT_LT(best, 32);
  // Each checkpoint was the best when it was written.
  EXPECT_EQ(recorder.best_checkpoints, recorder.best_steps);
  EXPECT_EQ(recorder.best_checkpoints.back(), best);
  EXPECT_THAT(Standing(&env), ElementsAre(32, best));
  EXPECT_THAT(recorder.notices, IsEmpty());
}

// The process ends after it has written the best model of step 16, and before it writes the checkpoint.
TEST(CheckpointsTest, TheBestIsKeptAfterItsFirstCheckpointWasLost) {
  v1::JobSpec spec = SmallJob(1, "best_model { keep_weights: true }");
  spec.mutable_checkpoints()->set_every_steps(12);
  spec.mutable_checkpoints()->set_keep_best(true);
  FaultyEnv env;
  class KilledRecorder : public Recorder {
   public:
    explicit KilledRecorder(FaultyEnv* env) : env_(env) {}
    void OnBestModel(const v1::BestResult& best) override {
      Recorder::OnBestModel(best);
      if (best.step() == 16) env_->FailAfter(0);
    }

   private:
    FaultyEnv* const env_;
  };
  KilledRecorder first(&env);
  TrainWithFiles(spec, "cpu", &env, &first, [](Trainer& trainer, int64_t step) {
    if (step == 20) trainer.Cancel();
  });
  ASSERT_THAT(first.best_steps, ElementsAre(8, 16));
  ASSERT_THAT(first.checkpoints, ElementsAre(8, 12));
  env.CutPower();

  Recorder second;
  const Result paused = TrainWithFiles(spec, "cpu", &env, &second, [](Trainer& trainer, int64_t step) {
    if (step == 20) trainer.Pause();
  });
  ASSERT_TRUE(paused.status.ok()) << paused.status;
  EXPECT_EQ(second.started, 12);
  EXPECT_EQ(paused.summary.best().step(), 16);
  EXPECT_THAT(Standing(&env), ElementsAre(paused.summary.steps(), 16));
}

TEST(CheckpointsTest, WhereTheNewestIsDamagedTheOneBeforeCounts) {
  v1::JobSpec spec = SmallJob(2);
  spec.mutable_checkpoints()->set_keep_last(2);
  const Whole whole(spec, "cpu");
  FaultyEnv env;
  Recorder first;
  EXPECT_EQ(TrainWithFiles(spec, "cpu", &env, &first,
                           [](Trainer& trainer, int64_t step) {
                             if (step == 20) trainer.Cancel();
                           })
                .status.code(),
            absl::StatusCode::kCancelled);
  EXPECT_THAT(Standing(&env), ElementsAre(16, 8));
  Damage(&env, 16);
  // A process that dies during a write leaves this file.
  ASSERT_TRUE(env.CreateFile(CheckpointPath(24) + ".tmp").ok());
  Recorder second;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &second).status.ok());
  EXPECT_EQ(second.started, 8);
  ASSERT_EQ(second.notices.size(), 1);
  EXPECT_THAT(second.notices[0], HasSubstr(CheckpointPath(16)));
  EXPECT_THAT(second.notices[0],
              HasSubstr("\" was changed; training continues from the checkpoint of step 8"));
  EXPECT_EQ(*env.ReadFile(kModel), whole.model);
  EXPECT_THAT(Standing(&env), ElementsAre(32, 24));
  EXPECT_TRUE(env.ReadFile(CheckpointPath(16) + ".damaged").ok());
  EXPECT_FALSE(env.ReadFile(CheckpointPath(24) + ".tmp").ok());

  // If all checkpoints are damaged, training refuses to start over.
  Damage(&env, 32);
  Damage(&env, 24);
  Recorder third;
  const absl::Status none = TrainWithFiles(spec, "cpu", &env, &third).status;
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr(CheckpointPath(32)));
  EXPECT_THAT(std::string(none.message()), HasSubstr("(2) is undamaged, so this job cannot continue"));
  EXPECT_TRUE(env.ReadFile(CheckpointPath(32)).ok());
}

TEST(CheckpointsTest, TheOneBeforeStandsUntilTheNewOneWasReadBack) {
  // A single write is lost before it reaches the disk.
  class LossyFile : public RandomAccessFile {
   public:
    explicit LossyFile(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {}
    absl::StatusOr<int64_t> ReadAt(int64_t offset, int64_t size, char* to) const override {
      const absl::StatusOr<int64_t> read = file_->ReadAt(offset, size, to);
      if (read.ok() && *read > 0 && offset + *read == *file_->Size()) to[*read - 1] ^= 1;
      return read;
    }
    absl::Status WriteAt(int64_t offset, absl::string_view data) override {
      return file_->WriteAt(offset, data);
    }
    absl::Status Truncate(int64_t size) override { return file_->Truncate(size); }
    absl::Status Sync() override { return file_->Sync(); }
    absl::StatusOr<int64_t> Size() const override { return file_->Size(); }

   private:
    const std::unique_ptr<RandomAccessFile> file_;
  };
  class LossyEnv : public FaultyEnv {
   public:
    absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path,
                                                                       Open how) override {
      auto file = FaultyEnv::OpenRandomAccess(path, how);
      if (file.ok() && path == CheckpointPath(16)) return std::make_unique<LossyFile>(*std::move(file));
      return file;
    }
  };
  LossyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(SmallJob(1), "cpu", &env, &recorder, [&](Trainer& trainer, int64_t step) {
                if (step == 20) trainer.Cancel();
              }).status.code() == absl::StatusCode::kCancelled);
  EXPECT_THAT(recorder.checkpoints, ElementsAre(8));
  ASSERT_EQ(recorder.notices.size(), 1);
  EXPECT_THAT(recorder.notices[0], HasSubstr("The checkpoint of step 16 could not be written"));
  EXPECT_THAT(recorder.notices[0], HasSubstr("its checksum is not that of its content"));
  EXPECT_THAT(Standing(&env), ElementsAre(8));
}

TEST(CheckpointsTest, OneThatHasEndedGoesOnWithMoreEpochs) {
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(SmallJob(1, "epochs: 2"), "cpu", &env, &recorder).status.ok());
  ASSERT_TRUE(TrainWithFiles(SmallJob(1), "cpu", &env, &recorder).status.ok());
  EXPECT_EQ(recorder.started, 16);
  EXPECT_EQ(*env.ReadFile(kModel), Whole(SmallJob(1), "cpu").model);

  // Training stops because nothing improves by 100. With more patience it has not ended.
  const auto stopping = [](int patience) {
    return SmallJob(1, absl::StrCat("epochs: 9 early_stopping { min_delta: 100 patience: ", patience, " }"));
  };
  FaultyEnv other;
  ASSERT_TRUE(TrainWithFiles(stopping(2), "cpu", &other, &recorder).status.ok());
  const Result more = TrainWithFiles(stopping(4), "cpu", &other, &recorder);
  EXPECT_EQ(recorder.started, 24);
  EXPECT_EQ(more.outcome.reason, v1::STATE_REASON_NO_IMPROVEMENT);
  EXPECT_EQ(more.summary.steps(), 40);
}

// A fault at each creation, write, sync, rename and removal: training continues from the newest durable
// checkpoint.
TEST(CheckpointsTest, WhereverTheDiskGoesTrainingGoesOnFromAWholeCheckpoint) {
  v1::JobSpec spec = SmallJob(1, "steps: 8 best_model {}");
  spec.mutable_checkpoints()->set_every_steps(2);
  spec.mutable_checkpoints()->set_keep_last(2);
  Whole whole(spec, "cpu");
  bool completed = false;
  int points = 0;
  for (; !completed; ++points) {
    FaultyEnv env;
    env.FailAfter(points);
    Recorder first;
    Trainer::Options options = OptionsFor(spec, "cpu", &first);
    options.checkpoint_folder = kFolder;
    options.best_path = kBest;
    options.env = &env;
    absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    // The first training ends, and reports every failed write.
    ASSERT_TRUE((*trainer)->Run().ok());
    completed = first.notices.empty();
    env.CutPower();
    Recorder second;
    const Result result = TrainWithFiles(spec, "cpu", &env, &second);
    ASSERT_TRUE(result.status.ok()) << points << ": " << result.status;
    // Every reported checkpoint is durable.
    EXPECT_GE(second.started, first.checkpoints.empty() ? 0 : first.checkpoints.back()) << points;
    EXPECT_EQ(*env.ReadFile(kModel), whole.model) << points;
    EXPECT_EQ(*env.ReadFile(kBest), *whole.env.ReadFile(kBest)) << points;
  }
  EXPECT_GT(points, 30);
}

// Dropout, augmentation, batch normalisation and a short last batch. The disk fails a few changes after each
// kill.
TEST(CheckpointsTest, KilledAtRandomStepsItEndsBitForBitWhereAWholeOneDoes) {
  std::mt19937 random(20261120);
  for (const bool averaging : {false, true}) {
    v1::JobSpec spec = SmallJob(2, "best_model {} weight_average { decay: 0.9 }");
    spec.mutable_model()->add_layers()->mutable_dropout()->set_rate(0.3);
    spec.mutable_model()->mutable_layers()->SwapElements(2, 3);
    spec.mutable_dataset()->add_augmentation()->mutable_horizontal_flip();
    spec.mutable_checkpoints()->set_every_steps(3);
    spec.mutable_checkpoints()->set_keep_last(2);
    spec.mutable_checkpoints()->set_keep_best(true);
    if (averaging) spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(5);
    Whole whole(spec, "cpu");
    FaultyEnv env;
    bool completed = false;
    int kills = 0;
    while (!completed && kills < 100) {
      const int64_t kill_after = std::uniform_int_distribution<int>(1, 9)(random);
      const int changes = std::uniform_int_distribution<int>(0, 12)(random);
      Recorder recorder;
      int64_t reports = 0;
      const Result result = TrainWithFiles(spec, "cpu", &env, &recorder, [&](Trainer& trainer, int64_t) {
        if (++reports != kill_after) return;
        env.FailAfter(changes);
        trainer.Cancel();
      });
      for (size_t i = 0; i < recorder.losses.size(); ++i) {
        ASSERT_EQ(recorder.losses[i], whole.recorder.losses[recorder.started + i]) << recorder.started;
      }
      completed = result.status.ok();
      if (completed) break;
      ASSERT_EQ(result.status.code(), absl::StatusCode::kCancelled) << result.status;
      env.CutPower();
      ++kills;
    }
    EXPECT_TRUE(completed);
    EXPECT_GT(kills, 3);
    EXPECT_EQ(*env.ReadFile(kModel), whole.model);
    EXPECT_EQ(*env.ReadFile(kBest), *whole.env.ReadFile(kBest));
  }
}

}  // namespace
}  // namespace tandem
