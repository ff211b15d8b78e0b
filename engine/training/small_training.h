#ifndef TANDEM_ENGINE_TRAINING_SMALL_TRAINING_H_
#define TANDEM_ENGINE_TRAINING_SMALL_TRAINING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/training/trainer.h"

// A training for tests, on any device.

namespace tandem {

// Returns a small LeNet on 61 synthetic samples: an epoch has 7 batches of 8 and a batch of 5.
v1::JobSpec SmallLenet(int replicas);

// Records all calls of a training.
class TrainingRecorder : public TrainerObserver {
 public:
  void OnStarted(int64_t step) override {
    ++started;
    started_at = step;
  }
  void OnProgress(const v1::Progress& report) override {
    progress.push_back(report);
    if (on_progress) on_progress();
  }
  void OnEpoch(const v1::EpochSummary& epoch) override { epochs.push_back(epoch); }
  void OnWorkerLoads(const v1::WorkerLoads& measured) override { loads.push_back(measured); }
  void OnParameters(const v1::ParameterReport& report) override { parameters.push_back(report); }
  void OnNotice(absl::string_view message) override {
    notices.emplace_back(message);
    if (on_notice) on_notice();
  }

  std::vector<double> losses() const {
    std::vector<double> result;
    for (const v1::Progress& report : progress) result.push_back(report.training().loss());
    return result;
  }

  std::vector<double> validation_losses() const {
    std::vector<double> result;
    for (const v1::EpochSummary& epoch : epochs) result.push_back(epoch.validation().loss());
    return result;
  }

  int started = 0;
  int64_t started_at = 0;
  std::vector<v1::Progress> progress;
  std::vector<v1::EpochSummary> epochs;
  std::vector<v1::WorkerLoads> loads;
  std::vector<v1::ParameterReport> parameters;
  std::vector<std::string> notices;
  std::function<void()> on_notice;
  std::function<void()> on_progress;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SMALL_TRAINING_H_
