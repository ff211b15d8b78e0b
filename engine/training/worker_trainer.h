#ifndef TANDEM_ENGINE_TRAINING_WORKER_TRAINER_H_
#define TANDEM_ENGINE_TRAINING_WORKER_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "engine/backend/communicator.h"
#include "engine/backend/memory_groups.h"
#include "engine/base/mutex.h"
#include "engine/data/data_digest.h"
#include "engine/data/dataset.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/checkpoint_keeper.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/load_meter.h"
#include "engine/training/replica.h"
#include "engine/training/reporter.h"
#include "engine/training/resumption.h"
#include "engine/training/serial_observer.h"
#include "engine/training/signal_watch.h"
#include "engine/training/snapshot.h"
#include "engine/training/step_plan.h"
#include "engine/training/trainer.h"
#include "engine/training/training_length.h"
#include "engine/training/training_state.h"

namespace tandem {

// Runs the replicas of a worker, each on its own thread. Run creates the shared objects before the threads
// start. `rank` counts all replicas of the job, `local` the replicas of this worker.
class WorkerTrainer final : public Trainer {
 public:
  // `submitted` is the data set as in the job. It may lack the source that options.spec has.
  WorkerTrainer(Options options, v1::DatasetSpec submitted)
      : options_(std::move(options)),
        submitted_dataset_(std::move(submitted)),
        first_rank_(count() / options_.group.workers * options_.group.worker),
        observer_(options_.observer),
        watch_(options_.spec, options_.clock),
        replicas_(count() / options_.group.workers) {}

  absl::Status Run() override;
  void Cancel() override { Fail(absl::CancelledError("training was cancelled")); }
  void Pause() override { watch_.Pause(); }
  TrainingOutcome outcome() const override {
    MutexLock lock(&mutex_);
    return outcome_;
  }
  v1::TrainingSummary Summary() const override;
  absl::Status SaveModel(const std::string& path) const override;

 private:
  // The numbers of replicas of the job and of this worker.
  int count() const { return static_cast<int>(options_.devices.size()); }
  int local_count() const { return static_cast<int>(replicas_.size()); }
  bool spread() const { return options_.group.workers > 1; }
  const DealtSamples& dealt() const { return *dealt_.load(); }
  void Deal(std::vector<double> loads) {
    all_dealt_.push_back(
        std::make_unique<DealtSamples>(options_.spec, data_.info, std::move(loads), state_, classes_));
    dealt_ = all_dealt_.back().get();
  }

  // Creates or joins the group of all replicas.
  absl::Status Connect();
  // Returns the names to which the data are matched: from the checkpoint, or from the model of the initial
  // weights. Nothing without either.
  absl::StatusOr<std::optional<DataNames>> NamesOfModel() const;
  // Opens the data. Call it after Resume.
  absl::Status OpenData();
  absl::Status OpenWeights();
  // Notifies of a normalization that may differ from the normalization of the loaded weights.
  void NoteNormalization();
  // Loads the checkpoint, if any.
  absl::Status Resume();
  // Creates the objects that replicas share, and restores their state from the checkpoint.
  // FAILED_PRECONDITION if the checkpoint is past the end of the job.
  absl::Status Prepare();
  // Connects, then opens all inputs. An error of a worker becomes the error of all workers.
  absl::Status Begin();
  // The body of a replica's thread.
  void RunReplica(int local);
  // Opens the replicas of all workers one after the other, because algorithms are timed while they compile.
  absl::Status OpenInTurn(int local);
  absl::Status OpenReplica(int local);
  // Sets the first state of the replica.
  absl::Status FillReplica(int local);
  // Sends the first notices to the observer.
  void TellOfStart();
  // Sends the notices that depend on the first steps, a single time.
  void TellOfFirstSteps();
  absl::Status Train(int local);
  absl::Status TakeSteps(int local);
  // Returns the largest number of steps that a device gets at a time from `step` on. `size` is the measured
  // or given number.
  int64_t MostStepsFrom(int64_t step, int64_t size) const;
  using AddMethod = absl::Status (Reporter::*)(int rank, int64_t steps, const AfterStep& after,
                                               Measurement measurement);
  // Adds this replica's measurement to the reporter. A replica of this worker also adds those of other
  // workers.
  absl::Status Add(AddMethod add, int local, int64_t steps, const AfterStep& after, Measurement own);
  // Does the actions after `steps` steps, after all replicas have added their measurements. All replicas must
  // call it. Returns true if training ends.
  absl::StatusOr<bool> Settle(int local, int64_t steps, const AfterStep& after);
  TrainingOutcome OutcomeOf(const AfterStep& after) const;
  // After the end of training at `steps` steps, gives the network the statistics of all training samples, if
  // the job wants them. All replicas must call it.
  absl::Status TakeStatistics(int local, int64_t steps);
  // Takes the statistics, then validates the finished network again. For a newest validation that came before
  // the statistics. All replicas must call it.
  absl::Status Finish(int local, int64_t steps);
  // Returns whether the newest measurement is the best and its model is to be kept.
  bool KeepsBest() const {
    return reporter_->Improved() && options_.spec.training().best_model().keep_weights() &&
           !options_.best_path.empty();
  }
  // OK if each replica can train on its share of a whole batch and of an epoch's last batch, dealt by
  // `loads`. INVALID_ARGUMENT otherwise. For example, batch_norm cannot train on a single sample.
  absl::Status CheckLoads(const std::vector<double>& loads) const;
  // Passes the replica's state to the keeper, after a check that it is finite. No later loss would show that
  // the last update was too large.
  absl::Status Keep(int local, int64_t steps, CheckpointKeeper::Purpose purpose);
  // Checks that the final state is finite.
  absl::Status CheckModel() const;
  // Adds the checkpoint from which the job would continue to an error of the numbers.
  absl::Status WithCheckpoint(absl::Status status) const;
  // Measures the replica after `step`, if due, and deals by the resulting loads. All replicas must call it.
  absl::Status MeasureLoads(int local, int64_t step);

  absl::StatusOr<Snapshot> TakeSnapshot() const;
  absl::Status WriteModelOf(const Snapshot& snapshot, const std::string& path,
                            const std::optional<v1::BestResult>& best = std::nullopt) const;

  // Ends the training. The first error counts.
  void Fail(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status failure() const {
    MutexLock lock(&mutex_);
    return failure_;
  }

  Options options_;  // Constant after OpenData.
  const v1::DatasetSpec submitted_dataset_;
  const int first_rank_;
  SerialObserver observer_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::atomic<Communicator*> group_{nullptr};  // One of the communicators, after Connect.

  OpenedDataset data_;
  DataDigest data_digest_;                         // Empty without checkpoints.
  std::map<std::string, Tensor> initial_weights_;  // By name. Empty if a checkpoint replaces them.
  int64_t planned_bytes_ = 0;                      // Of a single replica.
  bool told_of_first_steps_ = false;               // Used by the first replica's thread.
  MemoryGroups planned_memory_;                    // planned_bytes_, by use.
  // The training samples of each class, if the job balances samples. Otherwise null.
  std::shared_ptr<const ClassSamples> classes_;
  // The training samples as in the source: the source of data_.train, or data_.train itself.
  const Dataset* unchanged_samples_ = nullptr;
  bool resident_ = false;  // Whether samples are planned on the devices.
  // The last entry is current. Earlier entries were valid until loads were measured.
  std::vector<std::unique_ptr<DealtSamples>> all_dealt_;
  std::atomic<const DealtSamples*> dealt_{nullptr};
  std::unique_ptr<LoadMeter> load_meter_;  // Null if loads are not measured.
  std::unique_ptr<LearningRate> learning_rate_;
  // The checkpoint, until the replicas have taken it.
  absl::optional<Resumption> resumed_;
  TrainingState state_;  // At the start of Run.
  TrainingLength length_;
  SignalWatch watch_;  // Used by the replica of rank 0, except Pause.
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<CheckpointKeeper> keeper_;  // Null if nothing is kept.
  // Each replica is created and used by its own thread during Run. Other replicas read the first replica
  // while they are opened.
  std::vector<std::unique_ptr<Replica>> replicas_;
  // On the first worker after training: the state of other workers' replicas, in the order of ranks.
  Snapshot others_;

  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // The number of opened replicas of this worker, in the order of ranks. After a failure all count as opened,
  // so that none waits.
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
  // The bytes of the largest replica.
  int64_t replica_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool completed_ ABSL_GUARDED_BY(mutex_) = true;
  TrainingOutcome outcome_ ABSL_GUARDED_BY(mutex_);
  bool population_statistics_ ABSL_GUARDED_BY(mutex_) = false;  // As in TrainingState.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_WORKER_TRAINER_H_
