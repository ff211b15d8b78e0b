#include "engine/training/resume_fixture.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "gtest/gtest.h"

namespace tandem {

v1::JobSpec SmallJob(int replicas, const std::string& training) {
  v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat(
      R"(
    dataset {
      synthetic { shape: [1, 8, 8] classes: 4 train_samples: 61 validation_samples: 27 }
    }
    model {
      input { shape: [1, 8, 8] }
      layers { conv2d { filters: 3 kernel: 3 } }
      layers { batch_norm {} }
      layers { dense { units: 4 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { adam { learning_rate: 0.01 } }
      schedule { plateau { patience: 1 factor: 0.5 threshold: 100 threshold_mode: THRESHOLD_MODE_ABS } }
      global_batch_size: 8
      seed: 7
      report { every_steps: 1 }
      )",
      training, training.find("epochs") == 0 || training.find("steps") == 0 ? "" : " epochs: 4", "}"));
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

Result TrainWithFiles(const v1::JobSpec& spec, const std::string& kind, FaultyEnv* env, Recorder* recorder,
                      const std::function<void(Trainer&, int64_t step)>& act) {
  Trainer::Options options = OptionsFor(spec, kind, recorder);
  options.checkpoint_folder = kFolder;
  options.best_path = kBest;
  options.env = env;
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
  if (!trainer.ok()) return {trainer.status(), {}, {}};
  if (act) recorder->on_step = [&](int64_t step) { act(**trainer, step); };
  Result result;
  result.status = (*trainer)->Run();
  recorder->on_step = nullptr;
  result.summary = (*trainer)->Summary();
  if (!result.status.ok()) return result;
  result.outcome = (*trainer)->outcome();
  if (result.outcome.reason != v1::STATE_REASON_PAUSE_REQUESTED) {
    const absl::Status saved = (*trainer)->SaveModel(kModel);
    EXPECT_TRUE(saved.ok()) << saved;
  }
  return result;
}

Whole::Whole(const v1::JobSpec& spec, const std::string& kind) {
  const Result result = TrainWithFiles(spec, kind, &env, &recorder);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.outcome.reason, v1::STATE_REASON_COMPLETED);
  summary = result.summary;
  model = *env.ReadFile(kModel);
}

}  // namespace tandem
