#ifndef TANDEM_ENGINE_TRAINING_REPLICA_LOOP_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/communicator.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/coordinator.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/load_meter.h"
#include "engine/training/parameter_tracker.h"
#include "engine/training/replica.h"
#include "engine/training/signal_line.h"
#include "engine/training/step_plan.h"
#include "engine/training/training_setup.h"
#include "engine/training/verdict.h"

namespace tandem {

// The training of one rank, from its device to the model. All ranks of a job, threads and processes, run the
// same loop. A loop owns its replica and its course, and exchanges everything else through its communicator.
// Used by one thread.
class ReplicaLoop {
 public:
  // `setup` is open. `coordinator` is null but on rank 0. `first` is the loop of this process's first rank,
  // and null on that rank. All pointers must outlive the loop.
  ReplicaLoop(const TrainingSetup* setup, std::shared_ptr<const BeginningValues> beginning,
              Communicator* communicator, Coordinator* coordinator, const ReplicaLoop* first);

  // Trains to the end or to a pause. Rank 0's coordinator then has the model. Errors as Trainer::Run, without
  // the rank. The caller ends the group with an error.
  absl::Status Run();

  // Returns when the device has done all its work.
  void Wait();

 private:
  // Calls `work` on one rank after the other.
  absl::Status InTurn(absl::FunctionRef<absl::Status()> work);
  absl::Status OpenReplica();
  // Sets the first state of the replica.
  absl::Status FillReplica();
  // Frozen variables that another job trained begin with the mean of its replicas.
  absl::Status RestoreReplica(const Resumption& resumed);
  // Agrees on facts about all replicas, and begins the training.
  absl::Status Start();
  absl::Status TakeSteps();
  // Returns the largest number of steps that the device gets at a time from `step` on. `size` is the measured
  // or given number. Equal on all ranks.
  int64_t MostStepsFrom(int64_t step, int64_t size) const;
  // Returns whether the replicas' speed is measured at `step`.
  bool MeasuresAt(int64_t step) const;
  // Measures the replica after `step`, if due, and deals by the resulting loads.
  absl::Status MeasureLoads(int64_t step);
  // Does the actions after `steps` steps. Returns whether training ends.
  absl::StatusOr<bool> Act(int64_t steps, const AfterStep& after);
  // Reports the training since the last report.
  absl::Status Report(int64_t steps, const AfterStep& after);
  absl::Status Validate(int64_t steps, const AfterStep& after);
  // Gives the network the statistics of an epoch's samples, if the job wants them.
  absl::Status TakeStatistics(int64_t steps);
  // After the end of training, takes the statistics, then validates the finished network again.
  absl::Status Finish(int64_t steps);
  // Returns a copy of the parameters that a report has.
  absl::StatusOr<std::vector<NamedTensor>> ReadParameters() const;
  // Reports the parameters, if the job wants it. On rank 0.
  absl::Status ReportParameters(int64_t steps);
  // Returns the coordinator's verdict on all ranks.
  absl::StatusOr<Verdict> Hear(absl::FunctionRef<Verdict(Coordinator&)> conclude);
  // Passes all replicas' state to the coordinator.
  absl::Status Keep(int64_t steps, const Verdict& verdict);
  // Passes the last state to the coordinator, which makes the model.
  absl::Status PassModel();
  // Returns whether the group has ended, so that long work stops.
  bool has_ended() const { return !communicator_->status().ok(); }
  const v1::JobSpec& spec() const { return setup_.spec(); }

  const TrainingSetup& setup_;
  std::shared_ptr<const BeginningValues> beginning_;  // Null after FillReplica.
  Communicator* const communicator_;
  Coordinator* const coordinator_;
  // While this rank opens its replica, the first rank's loop waits, and its replica does not change.
  const ReplicaLoop* const first_;
  const int rank_;
  const std::unique_ptr<LearningRate> learning_rate_;
  // The first deal's averaging policy decides until the end, because averagings do not depend on loads.
  const std::shared_ptr<const DealtSamples> first_dealt_;
  std::shared_ptr<const DealtSamples> dealt_;
  const std::optional<LoadMeter> load_meter_;  // Nothing if loads are not measured.
  bool all_resident_ = false;                  // Whether all replicas have samples on their devices.
  int64_t steps_;                              // Taken steps.
  std::unique_ptr<Replica> replica_;
  std::optional<ParameterTracker> tracker_;  // On rank 0, if the job wants parameters reported.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_LOOP_H_
