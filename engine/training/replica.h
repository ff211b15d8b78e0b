#ifndef TANDEM_ENGINE_TRAINING_REPLICA_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/device.h"
#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/data/sampler.h"
#include "engine/layers/layer_kind.h"
#include "engine/schedules/learning_rate.h"
#include "engine/tensor/tensor.h"
#include "engine/training/measurement.h"
#include "engine/training/snapshot.h"
#include "engine/training/timed_communicator.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// What the replicas of a job share. All of it outlives them.
struct ReplicaContext {
  const v1::JobSpec* spec = nullptr;  // With its defaults.
  const OpenedDataset* data = nullptr;
  Sampler* train_sampler = nullptr;
  Sampler* validation_sampler = nullptr;  // Null where there is no validation.
  const LearningRate* learning_rate = nullptr;
  // Parameters and statistics that do not begin by their initializers, float32, by name.
  const std::map<std::string, Tensor>* initial_weights = nullptr;
  int64_t first_step = 0;  // From 0 over all epochs.
  int64_t steps = 0;       // Of the whole training.
};

// One copy of the network on a device of its own. Used by one thread at a time.
class Replica {
 public:
  // `communicator` outlives it.
  Replica(const ReplicaContext& context, std::unique_ptr<Device> device, Communicator* communicator);

  // Compiles all that it will run, with variables laid out like those of `like`, which may be null.
  absl::Status Open(const Replica* like);

  // Bytes that it holds on its device, batches that are prepared ahead included. After Open.
  int64_t bytes() const;

  // Gives all replicas the same initial parameters, by the seed or as they are given, and statistics: all of
  // them call this together.
  absl::Status InitializeParameters();

  // Takes the next step of training, which is step `step` from 0 over all epochs.
  absl::Status TrainStep(int64_t step);

  // Runs the replica's share of the whole validation set, with the means of all replicas' statistics, and
  // says what it measured: all of them call this together. The replica's own statistics stay as they are.
  // CANCELLED once `cancelled`, which is asked before every batch, returns true.
  absl::StatusOr<Measurement> Validate(const std::function<bool()>& cancelled);

  // What training has measured since the last call.
  absl::StatusOr<Measurement> TakeTraining();

  // Copies what the replica keeps from step to step: the first one all of it, the others only what is their
  // own.
  absl::StatusOr<ReplicaVariables> ReadVariables() const;
  // In place of InitializeParameters: gives it what a checkpoint has for it, by name. FAILED_PRECONDITION
  // where that is not all, or more, or of other shapes.
  absl::Status RestoreVariables(const std::map<std::string, const Tensor*>& values);

 private:
  // Runs the replica's share with the statistics as they are.
  absl::StatusOr<Measurement> RunValidation(const std::function<bool()>& cancelled);
  absl::Status CompileTraining(int64_t step_of_epoch);
  // Validates with what the variables hold.
  absl::StatusOr<Measurement> ValidateWithMeans(const std::function<bool()>& cancelled);
  // The meter's sums; cleared.
  absl::StatusOr<std::vector<double>> TakeMeter(const char* name);

  const ReplicaContext context_;
  const int rank_;
  const int replicas_;
  TimedCommunicator communicator_;
  const std::unique_ptr<Device> device_;
  std::unique_ptr<Variables> variables_;
  std::vector<Parameter> parameters_;
  std::vector<Statistic> statistics_;
  // A part of the replica's share of a batch; see PartsOf.
  struct Part {
    int64_t samples = 0;
    Executable* executable = nullptr;
  };
  // Those of a step, by the samples of the whole batch.
  std::map<int64_t, std::vector<Part>> steps_;
  // What runs them, each once.
  std::vector<std::unique_ptr<Executable>> training_;
  // By the replica's own samples.
  std::map<int64_t, std::unique_ptr<Executable>> validation_;
  std::unique_ptr<Loader> train_loader_;
  std::unique_ptr<Loader> validation_loader_;

  // As of the last TakeTraining.
  int64_t samples_ = 0;
  double wait_seconds_ = 0;
  double reduce_seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_H_
