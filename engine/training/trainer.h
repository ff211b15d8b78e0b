#ifndef TANDEM_ENGINE_TRAINING_TRAINER_H_
#define TANDEM_ENGINE_TRAINING_TRAINER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/communicator.h"
#include "engine/backend/device.h"
#include "engine/base/clock.h"
#include "engine/base/random_access_env.h"
#include "engine/training/early_stopping.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Receives the events of a training. Calls do not overlap. They come from threads of the Trainer, which block
// until the call returns, so calls must be quick.
class TrainerObserver {
 public:
  virtual ~TrainerObserver() = default;
  // The data are open, the replicas have formed their group, and the parameters are set. `step` is the step
  // of the loaded checkpoint, or 0 for a new training.
  virtual void OnStarted(int64_t /*step*/) {}
  // Called after OnStarted if training continues from this checkpoint. Its seconds are not set.
  virtual void OnResumed(const v1::Checkpoint& /*checkpoint*/) {}
  virtual void OnProgress(const v1::Progress& /*progress*/) {}
  virtual void OnEpoch(const v1::EpochSummary& /*epoch*/) {}
  // A validation within an epoch, or of the finished network after the last epoch.
  virtual void OnValidation(const v1::ValidationResult& /*result*/) {}
  // The checkpoint is durable.
  virtual void OnCheckpoint(const v1::Checkpoint& /*checkpoint*/) {}
  // The model with this result, the best so far, is durable at Options.best_path.
  virtual void OnBestModel(const v1::BestResult& /*best*/) {}
  // The replicas' loads were measured.
  virtual void OnWorkerLoads(const v1::WorkerLoads& /*loads*/) {}
  // An epoch of a job with training.report_parameters has ended. Comes before or after the epoch's OnEpoch.
  virtual void OnParameters(const v1::ParameterReport& /*report*/) {}
  virtual void OnNotice(absl::string_view /*message*/) {}
};

// Opens the device of a replica.
using DeviceFactory = std::function<absl::StatusOr<std::unique_ptr<Device>>(const v1::Device& device)>;

// The place of a worker among the workers of a job. Each worker is a process with the same number of
// replicas. All workers run a Trainer over the same job. Only the first worker has its results, reports them,
// writes checkpoints and the best model, decides by the clock, and obeys Pause. An error of a worker ends
// all.
struct TrainerGroup {
  int worker = 0;  // Its first rank is worker * (devices / workers).
  int workers = 1;
  // Connects this worker's ranks, `count` from `first` on, with the ranks of all other workers. Entry i is
  // the end of rank first + i. Run calls it if there are several workers.
  std::function<absl::StatusOr<std::vector<std::unique_ptr<Communicator>>>(int first, int count)> connect;
};

// Trains a job: opens its data, creates its replicas, and runs its epochs.
class Trainer {
 public:
  struct Options {
    // With or without its defaults.
    v1::JobSpec spec;
    // spec.dataset with its source.
    v1::DatasetSpec dataset;
    // An entry for each replica of all workers, in the order of ranks. Replicas on the same device repeat its
    // name.
    std::vector<v1::Device> devices;
    TrainerGroup group;
    DeviceFactory device_factory;
    // May be null. Must outlive the Trainer.
    TrainerObserver* observer = nullptr;
    // The clock of the report interval and of rates.
    const Clock* clock = Clock::Real();
    // The file of spec.initial_weights.
    std::string initial_weights_path;
    // The SHA-256 of this file in hexadecimal digits. Empty: unknown.
    std::string initial_weights_sha256;
    // The folder of checkpoints. Run continues from the newest checkpoint in it. Empty: writes no checkpoint.
    // All workers must get the same folder and best_path, and see the same files.
    std::string checkpoint_folder;
    // The path of the model with the best result, if spec.training.best_model.keep_weights. Empty: it is not
    // written.
    std::string best_path;
    // The file system of these files and of the model.
    RandomAccessEnv* env = RandomAccessEnv::Real();
    // The longest wait of replicas for other replicas. Then Run returns DEADLINE_EXCEEDED with the missing
    // replicas.
    absl::Duration watchdog = absl::Minutes(30);
  };

  // Checks the options. INVALID_ARGUMENT with the wrong fields.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(Options options);
  virtual ~Trainer() = default;

  // Trains to the end or to a pause. Call it a single time. Errors:
  //   CANCELLED            Cancel was called
  //   RESOURCE_EXHAUSTED   there is not enough memory
  //   DATA_LOSS            the data cannot be read or do not fit
  //   OUT_OF_RANGE         the loss or a parameter is not finite; the message names the step and the
  //                        last checkpoint
  //   FAILED_PRECONDITION  the checkpoint cannot be used, or workers do not agree
  //   UNAVAILABLE          another worker is lost; the message names its rank
  //   DEADLINE_EXCEEDED    a replica or another worker does not answer
  virtual absl::Status Run() = 0;

  // Makes Run return CANCELLED soon, after the current step. Any thread may call it.
  virtual void Cancel() = 0;

  // Makes Run return soon, after a step, with a checkpoint and the outcome PAUSE_REQUESTED, unless training
  // ends before. Any thread may call it.
  virtual void Pause() = 0;

  // Returns the outcome of a Run that returned OK. On the first worker alone.
  virtual TrainingOutcome outcome() const = 0;

  // Returns the results so far. Call it after Run, on the first worker alone.
  virtual v1::TrainingSummary Summary() const = 0;

  // Writes the model as safetensors, atomically: temporary file, fsync, rename. Parameters are
  // "<layer>.weight" and "<layer>.bias" in float32, statistics "<layer>.running_mean" and so on. State that
  // differs between replicas becomes its mean. Moving averages, if any, replace the parameters. If
  // best_model.export_best, the best weights replace the last. The metadata hold the job as submitted, with
  // its defaults and measured loads. Call it after Run, on the first worker alone.
  virtual absl::Status SaveModel(const std::string& path) const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINER_H_
