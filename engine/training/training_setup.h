#ifndef TANDEM_ENGINE_TRAINING_TRAINING_SETUP_H_
#define TANDEM_ENGINE_TRAINING_TRAINING_SETUP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "engine/backend/memory_groups.h"
#include "engine/base/mutex.h"
#include "engine/data/data_digest.h"
#include "engine/data/dataset.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/resumption.h"
#include "engine/training/serial_observer.h"
#include "engine/training/trainer.h"
#include "engine/training/training_length.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The values with which the replicas of a process begin.
struct BeginningValues {
  absl::optional<Resumption> resumed;        // The checkpoint, if any.
  std::map<std::string, Tensor> by_weights;  // By name, from the initial weights. Empty with a checkpoint.
};

// Everything that the ranks of a process share: the job, its data, and the state at the start. Thread-safe
// after Open, which the process calls before its ranks start.
class TrainingSetup {
 public:
  // `submitted` is the data set as in the job. It may lack the source that options.spec has.
  TrainingSetup(Trainer::Options options, v1::DatasetSpec submitted);

  // Opens the checkpoint, the data and the initial weights. Errors as Trainer::Run.
  absl::Status Open();
  // Returns the values with which replicas begin. The caller drops them when its replicas have copied them.
  // Call it once, after Open.
  std::shared_ptr<const BeginningValues> TakeBeginning() { return std::move(beginning_); }

  const Trainer::Options& options() const { return options_; }
  const v1::JobSpec& spec() const { return options_.spec; }  // With its defaults.
  const v1::DatasetSpec& submitted_dataset() const { return submitted_dataset_; }
  SerialObserver& observer() const { return observer_; }

  // The ranks: of the job, of this process, and the first rank of this process.
  int ranks() const { return static_cast<int>(options_.devices.size()); }
  int local_ranks() const { return ranks() / options_.group.workers; }
  int first_rank() const { return local_ranks() * options_.group.worker; }
  // Returns whether the ranks are in several processes.
  bool spread() const { return options_.group.workers > 1; }
  // Returns the names of the devices, by rank.
  std::vector<std::string> device_names() const;

  const OpenedDataset& data() const { return data_; }
  // The training samples as in the source: the source of data().train, or data().train itself.
  const Dataset* unchanged_samples() const { return unchanged_samples_; }
  const DataDigest& data_digest() const { return data_digest_; }     // Empty without checkpoints.
  int64_t planned_bytes() const { return planned_memory_.total(); }  // Of a single replica.
  const MemoryGroups& planned_memory() const { return planned_memory_; }
  bool plans_resident() const { return resident_; }  // Whether samples are planned on the devices.

  // The checkpoint from which training continues, if any.
  const absl::optional<v1::Checkpoint>& checkpoint() const { return checkpoint_; }
  const TrainingState& state() const { return state_; }  // At the start.
  const TrainingLength& length() const { return length_; }
  bool validates() const { return data_.info.validation_samples > 0; }
  // Returns whether training had ended before this run, so that no step follows.
  bool had_ended() const;

  // The loads by which samples are dealt at first.
  const std::vector<double>& loads() const { return loads_; }
  // Returns whether the ranks measure their loads in the first steps of this run.
  bool measures_loads() const { return measures_loads_; }
  // Returns the samples dealt by `loads`. Ranks that ask for the same loads share the result.
  std::shared_ptr<const DealtSamples> Deal(const std::vector<double>& loads) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if each replica can train on its share of a whole batch and of an epoch's last batch, dealt by
  // `loads`. INVALID_ARGUMENT otherwise. For example, batch_norm cannot train on a single sample.
  absl::Status CheckLoads(const std::vector<double>& loads) const;

  // Returns the learning rate at the start.
  std::unique_ptr<LearningRate> MakeLearningRate() const;

  void Notify(const std::string& notice) const {
    if (!notice.empty()) observer_.OnNotice(notice);
  }

 private:
  // Loads the checkpoint, if any.
  absl::Status OpenCheckpoint();
  void MatchBestModel();
  // Returns the names to which the data are matched: from the checkpoint, or from the model of the initial
  // weights. Nothing without either.
  absl::StatusOr<std::optional<DataNames>> NamesOfModel() const;
  absl::Status OpenData();
  absl::Status NotifyOfClasses();
  absl::Status CompareData();
  absl::Status CheckData();
  absl::Status OpenWeights();
  absl::Status NotifyOfNormalization();
  // Chooses the loads, and restores the state. FAILED_PRECONDITION if the checkpoint is past the end of the
  // job.
  absl::Status Begin();

  Trainer::Options options_;
  const v1::DatasetSpec submitted_dataset_;
  mutable SerialObserver observer_;
  OpenedDataset data_;
  DataDigest data_digest_;
  MemoryGroups planned_memory_;
  // The training samples of each class, if the job balances samples. Otherwise null.
  std::shared_ptr<const ClassSamples> classes_;
  const Dataset* unchanged_samples_ = nullptr;
  bool resident_ = false;
  std::shared_ptr<BeginningValues> beginning_ = std::make_shared<BeginningValues>();
  absl::optional<v1::Checkpoint> checkpoint_;
  TrainingState state_;
  TrainingLength length_;
  std::vector<double> loads_;
  bool measures_loads_ = false;
  mutable Mutex mutex_;
  // By loads.
  mutable std::map<std::vector<double>, std::shared_ptr<const DealtSamples>> dealt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINING_SETUP_H_
