#ifndef TANDEM_ENGINE_TRAINING_REPLICA_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/backend/device.h"
#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/layers/layer_kind.h"
#include "engine/schedules/learning_rate.h"
#include "engine/tensor/tensor.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/load_meter.h"
#include "engine/training/measurement.h"
#include "engine/training/population_statistics.h"
#include "engine/training/resident_data.h"
#include "engine/training/snapshot.h"
#include "engine/training/step_graph.h"
#include "engine/training/timed_communicator.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The objects that a replica uses. All of them must outlive it.
struct ReplicaContext {
  const v1::JobSpec* spec = nullptr;  // With its defaults.
  const OpenedDataset* data = nullptr;
  // The training samples as in the source.
  const Dataset* unchanged_samples = nullptr;
  // Whether samples are on the devices. See resident_data.h.
  bool resident = false;
  const DealtSamples* dealt = nullptr;
  const LearningRate* learning_rate = nullptr;
  int64_t first_step = 0;  // From 0 over all epochs.
  int64_t steps = 0;       // Of the whole training.
};

// The names of the variables that a replica keeps from step to step.
struct KeptVariables {
  std::vector<std::string> parameters;       // In the order of the layers.
  std::vector<std::string> optimizer_state;  // In the order of the names.
  std::vector<std::string> statistics;  // In the order of the layers. The moving averages follow, if any.
  std::vector<std::string> residuals;   // In the order of the names.
  // The parameters and statistics that training does not change. All replicas have the same.
  std::set<std::string> frozen;
};

// A copy of the network on its own device. Used by a single thread at a time.
class Replica {
 public:
  // `communicator` must outlive the replica.
  Replica(const ReplicaContext& context, std::unique_ptr<Device> device, Communicator* communicator);

  // Compiles all graphs. Variables get the layouts of `like`, a replica of this process. If null, they get
  // the layouts of rank 0, even if it is in another process.
  absl::Status Open(const Replica* like);

  // Returns whether samples are on its device. Call it after Open.
  bool resident() const { return resident_; }
  // Returns why the samples could not be placed on the device: it lacks the memory. Empty otherwise.
  const std::string& why_not_resident() const { return why_not_resident_; }

  // Returns Executable::notice, for people. Call it after a few steps.
  std::string notice() const;

  // Takes shares by `dealt` from step `next_step` on, which must be the next step.
  absl::Status Redeal(const DealtSamples* dealt, int64_t next_step);

  // Returns its bytes on the device, including prepared batches. Call it after Open.
  int64_t bytes() const;

  // Sets the same initial parameters and statistics in all replicas, from the seed or from `weights`:
  // float32, by name. All replicas must call this together.
  absl::Status InitializeParameters(const std::map<std::string, Tensor>& weights);

  // Takes `count` training steps from step `first` on, then the averaging that follows the last of them.
  // Steps are counted from 0 over all epochs. Only the last step may have an averaging. All replicas take the
  // same steps. With parameter averaging, a replica skips a batch in which it has no samples.
  absl::Status TrainSteps(int64_t first, int64_t count);

  // Runs the replica's share of the validation set after `steps` steps, and returns the measurement. State
  // that differs between replicas is replaced by its mean during the run, then restored. All replicas must
  // call this together. Calls `cancelled` before every batch. CANCELLED if it returns true.
  absl::StatusOr<Measurement> Validate(int64_t steps, const std::function<bool()>& cancelled);

  // For a job that WantsPopulationStatistics, after training has ended at step `steps`. Runs the replica's
  // share of the training samples with the exported parameters, and returns PopulationStatistics::TakeSums.
  // All replicas must call this together. Then each replica must pass the sums of all replicas, in the order
  // of ranks, to WriteStatistics. WriteStatistics replaces the running statistics. CANCELLED as in Validate.
  absl::StatusOr<std::vector<double>> SumStatistics(int64_t steps, const std::function<bool()>& cancelled);
  absl::Status WriteStatistics(absl::Span<const std::vector<double>> sums) {
    return population_->Write(sums);
  }

  // Returns a digest of the parameters. Replicas with bit-equal parameters have equal digests, other replicas
  // hardly ever.
  absl::StatusOr<double> ParametersDigest() const;

  // Returns the measurements of training since the last call.
  absl::StatusOr<Measurement> TakeTraining();

  // Sets whether to time each step. Timing waits for the device where training would not. Default: false.
  void SetMeasured(bool is_measured);

  // Returns when the device has done all its work, and ignores its error.
  void Wait() { (void)device_->Wait(); }

  // Returns the speed since the beginning, or since a caller reset it to 0.
  ReplicaSpeed* speed() { return &speed_; }

  // Returns the names of the variables that it keeps from step to step. Equal in all replicas.
  KeptVariables kept() const;
  // Returns the parameters, in the order of the layers. Call it after Open.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Returns a copy of a variable.
  absl::StatusOr<Tensor> Read(const std::string& name) const { return variables_->Read(name); }
  // Call it instead of InitializeParameters. Restores the state from a checkpoint's values, by name.
  // FAILED_PRECONDITION if a value is missing, unknown or of another shape.
  absl::Status RestoreVariables(const std::map<std::string, const Tensor*>& values);

 private:
  // Opens the replica, with samples on the device if resident_.
  absl::Status OpenAsPlaced(const Replica* like);
  // Writes the samples whose variables exist and are not written yet.
  absl::Status UploadSamples();
  // Drops the executables and the loaders.
  void DropExecutables();
  // Returns the first inputs of a graph, as a loader over `data` gives them.
  static std::vector<const void*> InputsOf(const Dataset& data, const void* samples, const void* targets);
  // Returns the data for loaders: samples, or indices of samples on the device.
  const Dataset* train_data() const {
    return train_picks_ == nullptr ? context_.data->train.get() : train_picks_.get();
  }
  const Dataset* validation_data() const {
    return validation_picks_ == nullptr ? context_.data->validation.get() : validation_picks_.get();
  }
  int LoaderDepth(const Dataset& data, bool picks) const;
  // Replaces the value of variable `name` by the value of `by`. Takes the mean over the replicas unless
  // `is_alike`. If the value changes, appends the old value to `own`.
  absl::Status Replace(const std::string& name, const std::string& by, bool is_alike,
                       std::vector<NamedTensor>* own);
  // Returns whether a parameter or a statistic has a moving average.
  bool HasAverage(const std::string& name) const { return variables_->kind(AverageName(name)).ok(); }
  // Returns the variable that a model exports under this name.
  std::string ExportedBy(const std::string& name) const {
    return HasAverage(name) ? AverageName(name) : name;
  }
  // Replaces all parameters by the exported values after `steps` steps: means and moving averages.
  absl::Status ReplaceParameters(int64_t steps, std::vector<NamedTensor>* own);
  absl::Status PutBack(const std::vector<NamedTensor>& own);
  // Sums up the statistics of the replica's share of an epoch, with the current parameters.
  absl::Status RunStatistics(int64_t steps, const std::function<bool()>& cancelled);
  // Runs the replica's validation share with the current statistics.
  absl::StatusOr<Measurement> RunValidation(const std::function<bool()>& cancelled);
  // Compiles the graphs for the current shares, and starts to load them.
  absl::Status TakeShares(int64_t first_step);
  absl::Status CompileTraining(int64_t step_of_epoch);
  // Returns the work of replica `rank` in this step of an epoch.
  StepShape ShapeOf(int64_t step_of_epoch, int rank) const;
  // Sets the layouts of variables: compiles rank 0's first graph, if its share is different.
  absl::Status LayOutAsFirst();
  // Returns the samples of the whole batch of step `step`, counted from 0 over all epochs.
  int64_t BatchSamplesOf(int64_t step) const {
    return context_.dealt->train->BatchSamples(context_.dealt->length.StepOfEpoch(step));
  }
  // Returns the number of steps from `step` on, at most `count`, that are runs of the same executable.
  int64_t StepsAlike(int64_t step, int64_t count) const;
  // Runs the executables of a step.
  absl::Status RunStep(int64_t step);
  // Runs these steps in as few launches as the device allows.
  absl::Status RunStepsAlike(int64_t step, int64_t count);
  // Averages the variables that parameter_averaging averages after `step`.
  absl::Status Average(int64_t step);
  bool ScalesLoss() const { return variables_->kind(kSkippedMeter).ok(); }
  // Sets the first scale, if the loss is scaled.
  absl::Status InitializeLossScale();
  // Returns and clears the meter's sums.
  absl::StatusOr<std::vector<double>> TakeMeter(const char* name);

  ReplicaContext context_;
  const int rank_;
  const int replicas_;
  const std::unique_ptr<Device> device_;
  // For the device's memory. Null if it is the host's.
  const std::unique_ptr<Communicator> device_communicator_;
  TimedCommunicator communicator_;
  bool resident_;
  std::string why_not_resident_;
  // Indices of samples on the device. Null if samples are on the host.
  std::unique_ptr<const Dataset> train_picks_;
  std::unique_ptr<const Dataset> validation_picks_;
  std::set<DataSplit> uploaded_;
  std::unique_ptr<Variables> variables_;
  std::vector<Parameter> parameters_;
  std::vector<Statistic> statistics_;
  // A part of the replica's share of a batch. See PartsOf.
  struct Part {
    int64_t samples = 0;
    Executable* executable = nullptr;
  };
  // The parts of the replica's share, by the samples of the whole batch.
  std::map<int64_t, std::vector<Part>> parts_;
  // The executables of all parts, without repetition.
  std::vector<std::unique_ptr<Executable>> training_;
  // Executables by the replica's own samples.
  std::map<int64_t, std::unique_ptr<Executable>> validation_;
  // Null if the job does not want population statistics.
  std::unique_ptr<PopulationStatistics> population_;
  std::unique_ptr<Loader> train_loader_;
  std::unique_ptr<Loader> validation_loader_;

  ReplicaSpeed speed_;
  bool is_measured_ = false;
  double earlier_wait_seconds_ = 0;  // Of earlier loaders.
  // Totals at the last TakeTraining.
  int64_t samples_ = 0;
  double wait_seconds_ = 0;
  double reduce_seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_H_
