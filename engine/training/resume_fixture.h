#ifndef TANDEM_ENGINE_TRAINING_RESUME_FIXTURE_H_
#define TANDEM_ENGINE_TRAINING_RESUME_FIXTURE_H_

// For tests of trainings that write files: checkpoints, the best model and the last model.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/faulty_env.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/training/trainer_fixture.h"

namespace tandem {

inline constexpr char kFolder[] = "/d";
inline constexpr char kBest[] = "/d/best.safetensors";
inline constexpr char kModel[] = "/d/model.safetensors";

// Returns a job with batch normalisation, optimizer state, a plateau and a short last batch: 8 steps in an
// epoch. `training` is appended to its training message.
v1::JobSpec SmallJob(int replicas, const std::string& training = "");

// Returns the path of the checkpoint of a step.
inline std::string CheckpointPath(int64_t step) {
  return absl::StrCat(kFolder, "/", CheckpointFileName(step));
}

class Recorder : public TrainerObserver {
 public:
  void OnStarted(int64_t step) override { started = step; }
  void OnResumed(const v1::Checkpoint& checkpoint) override { resumed = checkpoint; }
  void OnProgress(const v1::Progress& report) override {
    losses.push_back(report.training().loss());
    rates.push_back(report.learning_rate());
    if (on_step) on_step(report.step());
  }
  void OnEpoch(const v1::EpochSummary& epoch) override { epochs.push_back(epoch); }
  void OnValidation(const v1::ValidationResult& result) override { validations.push_back(result); }
  void OnCheckpoint(const v1::Checkpoint& checkpoint) override {
    checkpoints.push_back(checkpoint.step());
    if (checkpoint.best()) best_checkpoints.push_back(checkpoint.step());
  }
  void OnBestModel(const v1::BestResult& best) override { best_steps.push_back(best.step()); }
  void OnWorkerLoads(const v1::WorkerLoads& measured) override { loads.push_back(measured); }
  void OnNotice(absl::string_view message) override { notices.emplace_back(message); }

  int64_t started = -1;
  v1::Checkpoint resumed;
  std::vector<double> losses, rates;
  std::vector<v1::EpochSummary> epochs;
  std::vector<v1::ValidationResult> validations;
  std::vector<int64_t> checkpoints, best_checkpoints, best_steps;
  std::vector<v1::WorkerLoads> loads;
  std::vector<std::string> notices;
  std::function<void(int64_t step)> on_step;
};

struct Result {
  absl::Status status;
  TrainingOutcome outcome;
  v1::TrainingSummary summary;
};

// Runs a trainer over the files of `env`. Calls `act` after each report of a step.
Result TrainWithFiles(const v1::JobSpec& spec, const std::string& kind, FaultyEnv* env, Recorder* recorder,
                      const std::function<void(Trainer&, int64_t step)>& act = {});

// The result of an uninterrupted training.
struct Whole {
  Whole(const v1::JobSpec& spec, const std::string& kind);
  FaultyEnv env;
  Recorder recorder;
  v1::TrainingSummary summary;
  std::string model;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_RESUME_FIXTURE_H_
