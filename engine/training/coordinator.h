#ifndef TANDEM_ENGINE_TRAINING_COORDINATOR_H_
#define TANDEM_ENGINE_TRAINING_COORDINATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/schedules/learning_rate.h"
#include "engine/tensor/tensor.h"
#include "engine/training/checkpoint_keeper.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/measurement.h"
#include "engine/training/model_file.h"
#include "engine/training/reporter.h"
#include "engine/training/signal_watch.h"
#include "engine/training/snapshot.h"
#include "engine/training/step_plan.h"
#include "engine/training/trainer.h"
#include "engine/training/training_setup.h"
#include "engine/training/verdict.h"

namespace tandem {

// Everything that a job does once, and not once for each replica: watches the clock and the commands,
// reports, concludes, and keeps checkpoints and the model. Exists for rank 0 alone. Rank 0's thread uses it
// during the training, and the owner's thread before and after. Pause may come from any thread.
class Coordinator {
 public:
  // `setup` must outlive the coordinator. It may be opened later.
  explicit Coordinator(const TrainingSetup* setup);

  // Makes training pause after a step. Any thread may call it at any time.
  void Pause() { watch_.Pause(); }

  // Restores the state at the start, and begins to keep checkpoints. Call it when `setup` is open.
  void Open();

  // Call it when the replicas are ready. `bytes` are the bytes of the largest replica. `no_memory` says why a
  // device had no room for the samples, or is empty.
  void Start(int64_t bytes, const std::string& no_memory);
  // Sends a notice to the observer, unless it is empty.
  void Notify(const std::string& notice) { setup_.Notify(notice); }

  // Return and report signals, as SignalWatch.
  StepSignals Look() const { return watch_.Look(); }
  void Took(int64_t steps, bool disturbed) { watch_.Took(steps, disturbed); }
  void Acted(const StepSignals& signals, const AfterStep& after) { watch_.Acted(signals, after); }
  void Restart() { watch_.Restart(); }

  // Takes all replicas' measurements, as Reporter.
  absl::Status AddTraining(int64_t steps, const AfterStep& after, const std::vector<Measurement>& replicas) {
    return reporter_->AddTraining(steps, after, replicas);
  }
  absl::Status AddValidation(int64_t steps, const AfterStep& after,
                             const std::vector<Measurement>& replicas) {
    return reporter_->AddValidation(steps, after, replicas);
  }
  // The network has the statistics of an epoch's samples. The time for them does not count.
  void TookStatistics();

  // Tells the observer. The time since the last report does not count.
  void TellParameters(const v1::ParameterReport& report);

  // Returns the loads for the samples per second of all replicas, and tells the observer. `step` is the next
  // step.
  std::vector<double> MeasureLoads(const std::vector<double>& speeds, int64_t step);
  // From now on, samples are dealt like this.
  void Deal(std::shared_ptr<const DealtSamples> dealt) ABSL_LOCKS_EXCLUDED(mutex_);

  // Concludes from all measurements of a step. If training ends within an epoch, ends the epoch.
  Verdict Conclude(const AfterStep& after);
  // Returns the conclusions from a validation after training had ended before this run.
  Verdict ConcludeFinished() const;

  // Writes the replicas' state after `steps` steps, as `verdict` says, on another thread. OUT_OF_RANGE if a
  // parameter is not finite: no later loss would show that the last update was too large.
  absl::Status Keep(Snapshot snapshot, const Verdict& verdict, int64_t steps);
  // Makes the model from the last state, for SaveModel. OUT_OF_RANGE as above.
  absl::Status SetModel(const Snapshot& snapshot, int64_t steps);

  // The owner calls these after training.

  // Returns when all checkpoints are written.
  void Flush();
  // Adds the checkpoint from which the job would continue to an error of the numbers.
  absl::Status WithCheckpoint(const absl::Status& status) const;
  const TrainingOutcome& outcome() const { return outcome_; }
  v1::TrainingSummary Summary() const;
  absl::Status SaveModel(const std::string& path) const;

 private:
  TrainingOutcome OutcomeOf(const AfterStep& after) const;
  // Returns whether the newest measurement is the best and its model is to be kept.
  bool KeepsBest() const;
  std::shared_ptr<const DealtSamples> dealt() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the state for a checkpoint.
  absl::StatusOr<TrainingState> State() const;
  // Return the job and the data of the model, for its file.
  v1::JobSpec ModelJob() const;
  TrainedOn ModelData() const;
  absl::StatusOr<std::vector<NamedTensor>> ModelOf(const Snapshot& snapshot) const;
  absl::Status WriteModelWith(const std::vector<NamedTensor>& tensors, const std::string& path,
                              const std::optional<v1::BestResult>& best) const;

  const TrainingSetup& setup_;
  SignalWatch watch_;
  std::unique_ptr<LearningRate> learning_rate_;
  // The samples dealt at first. Their averaging policy has the loads of the first deal.
  std::shared_ptr<const DealtSamples> first_dealt_;
  std::unique_ptr<Reporter> reporter_;
  TrainingOutcome outcome_;
  bool has_measured_loads_ = false;
  bool population_statistics_ = false;             // As in TrainingState.
  std::optional<std::vector<NamedTensor>> model_;  // After SetModel.

  mutable Mutex mutex_;
  // Read by the keeper's thread.
  std::shared_ptr<const DealtSamples> dealt_ ABSL_GUARDED_BY(mutex_);
  // Null if nothing is kept. Its thread uses the members above.
  std::unique_ptr<CheckpointKeeper> keeper_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_COORDINATOR_H_
