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

// Hears what happens in a training. Calls come one at a time, from a thread of the Trainer, which waits for
// them: they must be quick.
class TrainerObserver {
 public:
  virtual ~TrainerObserver() = default;
  // Data is open, parameters are initialised, or those of the checkpoint of step `step`, replicas have formed
  // their group. Step 0: training begins.
  virtual void OnStarted(int64_t /*step*/) {}
  // After OnStarted: training goes on from this checkpoint. Its seconds are not set.
  virtual void OnResumed(const v1::Checkpoint& /*checkpoint*/) {}
  virtual void OnProgress(const v1::Progress& /*progress*/) {}
  virtual void OnEpoch(const v1::EpochSummary& /*epoch*/) {}
  // A validation within an epoch; or after the last epoch, of the network as it was finished.
  virtual void OnValidation(const v1::ValidationResult& /*result*/) {}
  // A checkpoint is durable.
  virtual void OnCheckpoint(const v1::Checkpoint& /*checkpoint*/) {}
  // The model with this result, the best so far, is durable at Options.best_path.
  virtual void OnBestModel(const v1::BestResult& /*best*/) {}
  // The replicas' loads were measured.
  virtual void OnWorkerLoads(const v1::WorkerLoads& /*loads*/) {}
  virtual void OnNotice(absl::string_view /*message*/) {}
};

// Opens the device that a replica computes on.
using DeviceFactory = std::function<absl::StatusOr<std::unique_ptr<Device>>(const v1::Device& device)>;

// A worker's place among those that train one job together, each a process with as many replicas. All of them
// run a Trainer over the same job, and come to the same results; the first one alone writes checkpoints and
// the best model, and decides what depends on the clock, and its Pause counts. An error of one ends all.
struct TrainerGroup {
  int worker = 0;  // It has the ranks from worker times (devices / workers) on.
  int workers = 1;
  // Connects this worker's ranks, `count` from `first` on, with those of all others; entry i is the end of
  // rank first + i. Called by Run, where there are several workers.
  std::function<absl::StatusOr<std::vector<std::unique_ptr<Communicator>>>(int first, int count)> connect;
};

// Trains one job: opens its data, makes its replicas, and takes it through its epochs.
class Trainer {
 public:
  struct Options {
    // Defaults filled in or not.
    v1::JobSpec spec;
    // spec.dataset with its source.
    v1::DatasetSpec dataset;
    // One for each replica that is made, in the order of ranks; replicas that share a device name it again.
    // Those of other workers too.
    std::vector<v1::Device> devices;
    TrainerGroup group;
    DeviceFactory device_factory;
    // Outlives the Trainer; may be null.
    TrainerObserver* observer = nullptr;
    // For the report interval and for rates.
    const Clock* clock = Clock::Real();
    // The file that spec.initial_weights names.
    std::string initial_weights_path;
    // What that file's content must have, in hexadecimal digits; empty: it is not known.
    std::string initial_weights_sha256;
    // The folder where checkpoints are written, and read when Run begins: where there are any, training goes
    // on from the newest. Empty: none is written. All workers are given this and the next path alike, and see
    // the same files.
    std::string checkpoint_folder;
    // Where the model with the best result is written, where spec.training.best_model.keep_weights asks for
    // it. Empty: it is not.
    std::string best_path;
    // For these files and the model.
    RandomAccessEnv* env = RandomAccessEnv::Real();
    // Replicas that wait so long for others end the training with DEADLINE_EXCEEDED, which names these.
    absl::Duration watchdog = absl::Minutes(30);
  };

  // Checks the options. INVALID_ARGUMENT with the fields at fault.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(Options options);
  virtual ~Trainer() = default;

  // Trains to the end, or to a pause; call once. CANCELLED after Cancel; RESOURCE_EXHAUSTED where there is no
  // memory; DATA_LOSS where the data cannot be read or does not fit; OUT_OF_RANGE where the loss, or a
  // parameter is infinite or not a number (the message says the step, and that of the last checkpoint);
  // FAILED_PRECONDITION where the checkpoint that is there cannot be used, or workers do not agree;
  // UNAVAILABLE, naming its rank, where another worker is lost or hangs.
  virtual absl::Status Run() = 0;

  // Makes Run return soon, after the step in progress. From any thread.
  virtual void Cancel() = 0;

  // Makes Run return soon, with the outcome PAUSE_REQUESTED and a checkpoint, after a step; unless training
  // ends before. From any thread.
  virtual void Pause() = 0;

  // How Run, which returned OK, ended.
  virtual TrainingOutcome outcome() const = 0;

  // What came of the training so far. After Run.
  virtual v1::TrainingSummary Summary() const = 0;

  // Writes the model as safetensors (temporary file, fsync, rename): parameters as "<layer>.weight" and
  // "<layer>.bias" in float32, statistics as "<layer>.running_mean" and such, the means of what replicas have
  // of their own, and the job as it was submitted, with its defaults and the loads that were measured, as
  // metadata. The moving averages of the parameters in
  // their place, where there are any; the best weights in place of the last, where best_model.export_best
  // says so. After Run, and on the first worker alone.
  virtual absl::Status SaveModel(const std::string& path) const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINER_H_
