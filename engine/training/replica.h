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

// What the replicas of a job share. All of it outlives them.
struct ReplicaContext {
  const v1::JobSpec* spec = nullptr;  // With its defaults.
  const OpenedDataset* data = nullptr;
  // Its training samples as the source has them.
  const Dataset* unchanged_samples = nullptr;
  // Whether samples lie on the devices: see resident_data.h.
  bool resident = false;
  const DealtSamples* dealt = nullptr;
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

  // Compiles all that it will run, with variables laid out like those of `like`, a replica of this process.
  // Where that is null, as those of rank 0 are, in whichever process that is.
  absl::Status Open(const Replica* like);

  // Whether samples lie on its device. After Open.
  bool resident() const { return resident_; }
  // Why they do not though they were to: the device has no memory for them. Empty otherwise.
  const std::string& why_not_resident() const { return why_not_resident_; }

  // What a person should know of how its steps are done; see Executable::notice. After a few steps.
  std::string notice() const;

  // Takes its shares by `dealt` from step `next_step` on, which is the next.
  absl::Status Redeal(const DealtSamples* dealt, int64_t next_step);

  // Bytes that it holds on its device, batches that are prepared ahead included. After Open.
  int64_t bytes() const;

  // Gives all replicas the same initial parameters, by the seed or as they are given, and statistics: all of
  // them call this together.
  absl::Status InitializeParameters();

  // Takes the next steps of training, `count` from step `first` on, from 0 over all epochs, and the averaging
  // that follows the last of them; none follows another. All replicas take the same steps. One that takes
  // steps of its own and gets nothing of a batch takes none.
  absl::Status TrainSteps(int64_t first, int64_t count);

  // Runs the replica's share of the whole validation set after `steps` steps, with the means of what replicas
  // have of their own, and says what it measured: all of them call this together. The replica's own variables
  // stay as they are. CANCELLED once `cancelled`, which is asked before every batch, returns true.
  absl::StatusOr<Measurement> Validate(int64_t steps, const std::function<bool()>& cancelled);

  // Where the job WantsPopulationStatistics, when training has ended after `steps` steps: runs the replica's
  // share of the training samples, with what is exported in the place of its own parameters, and gives
  // PopulationStatistics::TakeSums. All replicas call this together, and then give what all of them gave, in
  // the order of ranks, to WriteStatistics, which replaces the running statistics. CANCELLED as in Validate.
  absl::StatusOr<std::vector<double>> SumStatistics(int64_t steps, const std::function<bool()>& cancelled);
  absl::Status WriteStatistics(absl::Span<const std::vector<double>> sums) {
    return population_->Write(sums);
  }

  // A number that is the same for replicas whose parameters are equal bit for bit, and hardly ever for
  // others.
  absl::StatusOr<double> ParametersDigest() const;

  // What training has measured since the last call.
  absl::StatusOr<Measurement> TakeTraining();

  // Whether its speed is to be told from each step: then its device is waited for where it would be of no use
  // otherwise. Not before the first call.
  void SetMeasured(bool is_measured);

  // Returns when its device has done all that it was given, whatever came of it.
  void Wait() { (void)device_->Wait(); }

  // Of its training so far, or since whoever asked last set it to 0.
  ReplicaSpeed* speed() { return &speed_; }

  // Copies what the replica keeps from step to step: the first one all of it, the others only what is not
  // alike.
  absl::StatusOr<ReplicaVariables> ReadVariables(const Alike& alike) const;
  // In place of InitializeParameters: gives it what a checkpoint has for it, by name. FAILED_PRECONDITION
  // where that is not all, or more, or of other shapes.
  absl::Status RestoreVariables(const std::map<std::string, const Tensor*>& values);

 private:
  // Opens it with samples on the device or not, as resident_ says.
  absl::Status OpenAsPlaced(const Replica* like);
  // Writes what samples on the device there are variables for and is not there yet.
  absl::Status UploadSamples();
  // Loaders, too.
  void DropExecutables();
  // The first inputs of a graph, as a loader over `data` gives them.
  static std::vector<const void*> InputsOf(const Dataset& data, const void* samples, const void* targets);
  // What loaders give: samples, or which ones.
  const Dataset* train_data() const {
    return train_picks_ == nullptr ? context_.data->train.get() : train_picks_.get();
  }
  const Dataset* validation_data() const {
    return validation_picks_ == nullptr ? context_.data->validation.get() : validation_picks_.get();
  }
  int LoaderDepth(const Dataset& data, bool picks) const;
  // Puts the variable `by`, and where not all have it alike the mean over the replicas, in the place of
  // `name`, whose value is appended to `own` where it changes.
  absl::Status Replace(const std::string& name, const std::string& by, bool is_alike,
                       std::vector<NamedTensor>* own);
  // Whether a parameter or a statistic has a moving average.
  bool HasAverage(const std::string& name) const { return variables_->kind(AverageName(name)).ok(); }
  // The variable that a model has under a parameter's or a statistic's name.
  std::string ExportedBy(const std::string& name) const {
    return HasAverage(name) ? AverageName(name) : name;
  }
  // The same for all parameters, by what is exported after `steps` steps: means, and moving averages.
  absl::Status ReplaceParameters(int64_t steps, std::vector<NamedTensor>* own);
  absl::Status PutBack(const std::vector<NamedTensor>& own);
  // Sums up the statistics of the replica's share of an epoch, with the parameters as they are.
  absl::Status RunStatistics(int64_t steps, const std::function<bool()>& cancelled);
  // Runs the replica's share with the statistics as they are.
  absl::StatusOr<Measurement> RunValidation(const std::function<bool()>& cancelled);
  // Compiles what the shares by which samples are dealt need, and begins to load them.
  absl::Status TakeShares(int64_t first_step);
  absl::Status CompileTraining(int64_t step_of_epoch);
  // What replica `rank` does at such a step.
  StepShape ShapeOf(int64_t step_of_epoch, int rank) const;
  // Settles the layouts of variables by compiling what rank 0 compiles first, where that is of another share.
  absl::Status LayOutAsFirst();
  // Runs the executables of a step.
  absl::Status RunStep(int64_t step);
  // How many steps, `step` the first of at most `count`, are runs of one executable.
  int64_t StepsAlike(int64_t step, int64_t count) const;
  // Runs such an executable so often, as few launches as the device can make of it.
  absl::Status RunStepsAlike(int64_t step, int64_t count);
  // What parameter_averaging averages after `step`.
  absl::Status Average(int64_t step);
  bool ScalesLoss() const { return variables_->kind(kSkippedMeter).ok(); }
  // Where it does: the scale that it begins with.
  absl::Status InitializeLossScale();
  // The meter's sums; cleared.
  absl::StatusOr<std::vector<double>> TakeMeter(const char* name);

  ReplicaContext context_;
  const int rank_;
  const int replicas_;
  const std::unique_ptr<Device> device_;
  // For the device's memory; null where that is the host's.
  const std::unique_ptr<Communicator> device_communicator_;
  TimedCommunicator communicator_;
  bool resident_;
  std::string why_not_resident_;
  // Of samples on the device; null otherwise.
  std::unique_ptr<const Dataset> train_picks_;
  std::unique_ptr<const Dataset> validation_picks_;
  std::set<DataSplit> uploaded_;
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
  // Null where the job does not want them.
  std::unique_ptr<PopulationStatistics> population_;
  std::unique_ptr<Loader> train_loader_;
  std::unique_ptr<Loader> validation_loader_;

  ReplicaSpeed speed_;
  bool is_measured_ = false;
  double earlier_wait_seconds_ = 0;  // Of loaders before the one that there is.
  // As of the last TakeTraining.
  int64_t samples_ = 0;
  double wait_seconds_ = 0;
  double reduce_seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_H_
