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
#include "engine/training/snapshot.h"
#include "engine/training/step_schedule.h"
#include "engine/training/trainer.h"
#include "engine/training/training_state.h"

namespace tandem {

// The replicas of a worker, as threads. What they share is made by Run, before they start. `rank` counts all
// replicas of the job, `local` those of this worker.
class WorkerTrainer final : public Trainer {
 public:
  // `submitted` is the data set as the job names it, which may be without the source that options.spec has.
  WorkerTrainer(Options options, v1::DatasetSpec submitted)
      : options_(std::move(options)),
        submitted_dataset_(std::move(submitted)),
        first_rank_(count() / options_.group.workers * options_.group.worker),
        observer_(options_.observer),
        replicas_(count() / options_.group.workers) {}

  absl::Status Run() override;
  void Cancel() override { Fail(absl::CancelledError("training was cancelled")); }
  void Pause() override { pause_.store(true, std::memory_order_relaxed); }
  TrainingOutcome outcome() const override {
    MutexLock lock(&mutex_);
    return outcome_;
  }
  v1::TrainingSummary Summary() const override;
  absl::Status SaveModel(const std::string& path) const override;

 private:
  // Replicas of the job, and of this worker.
  int count() const { return static_cast<int>(options_.devices.size()); }
  int local_count() const { return static_cast<int>(replicas_.size()); }
  bool spread() const { return options_.group.workers > 1; }
  const DealtSamples& dealt() const { return *dealt_.load(); }
  void Deal(std::vector<double> loads) {
    all_dealt_.push_back(std::make_unique<DealtSamples>(options_.spec, data_.info, std::move(loads), state_));
    dealt_ = all_dealt_.back().get();
  }

  // Makes, or joins, the group of all replicas.
  absl::Status Connect();
  // The names to which the data are matched: those of the checkpoint, or of the model that training begins
  // with; none where there is neither.
  absl::StatusOr<std::optional<DataNames>> NamesOfModel() const;
  // After Resume.
  absl::Status OpenData();
  absl::Status OpenWeights();
  // Tells of a normalization that may differ from the normalization that the loaded weights were trained
  // with.
  void NoteNormalization();
  // Takes what the checkpoint has, where there is one.
  absl::Status Resume();
  // What replicas share, and what begins where the checkpoint ended. FAILED_PRECONDITION: the checkpoint is
  // past the end of the job.
  absl::Status Prepare();
  // Connects, and takes in what is there. An error of one worker is that of all.
  absl::Status Begin();
  // A replica's thread.
  void RunReplica(int local);
  // Opens the replicas one after the other, those of all workers, as algorithms are timed while they compile.
  absl::Status OpenInTurn(int local);
  absl::Status OpenReplica(int local);
  // Gives the replica what it begins with.
  absl::Status FillReplica(int local);
  // Tells the observer what a person should know.
  void TellOfStart();
  // The same of what the first steps have shown, once.
  void TellOfFirstSteps();
  absl::Status Train(int local);
  absl::Status TakeSteps(int local);
  // How many steps may be taken from `step` on before anybody looks, `size` of them being given at a time.
  int64_t MostStepsFrom(int64_t step, int64_t size) const;
  using AddMethod = absl::Status (Reporter::*)(int rank, int64_t steps, const AfterStep& after,
                                               Measurement measurement);
  // Gives the reporter what this replica measured, and, by one of this worker's, what those of others did.
  absl::Status Add(AddMethod add, int local, int64_t steps, const AfterStep& after, Measurement own);
  // What comes after `steps` steps, the replicas having added what they measured: all of them call this. True
  // where training ends.
  absl::StatusOr<bool> Settle(int local, int64_t steps, const AfterStep& after);
  TrainingOutcome OutcomeOf(const AfterStep& after) const;
  // Where the job wants them, gives the network the statistics of all training samples when training has
  // ended after `steps` steps: all of them call this.
  absl::Status TakeStatistics(int local, int64_t steps);
  // The same where the newest validation was before that: there is one more.
  absl::Status Finish(int local, int64_t steps);
  // Whether the newest measurement is the best, and its model is to be kept.
  bool KeepsBest() const {
    return reporter_->Improved() && options_.spec.training().best_model().keep_weights() &&
           !options_.best_path.empty();
  }
  // OK if each replica can train on its shares of a whole batch and of an epoch's last, dealt by `loads`.
  // INVALID_ARGUMENT if one cannot, as batch_norm cannot train on one sample.
  absl::Status CheckLoads(const std::vector<double>& loads) const;
  // Gives what a replica keeps to be written. That it is finite is seen before: no later step's loss would
  // say that the last update was too large.
  absl::Status Keep(int local, int64_t steps, CheckpointKeeper::Purpose purpose);
  // That what training ends with is finite.
  absl::Status CheckModel() const;
  // Adds to an error of the numbers from which checkpoint the job would go on.
  absl::Status WithCheckpoint(absl::Status status) const;
  // Measures the replica after `step`, where that is to be done, and deals by the loads that follow: all
  // replicas call this.
  absl::Status MeasureLoads(int local, int64_t step);

  absl::StatusOr<Snapshot> TakeSnapshot() const;
  absl::Status WriteModelOf(const Snapshot& snapshot, const std::string& path,
                            const std::optional<v1::BestResult>& best = std::nullopt) const;

  // Ends the training with the first error that comes here.
  void Fail(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status failure() const {
    MutexLock lock(&mutex_);
    return failure_;
  }

  const Options options_;
  const v1::DatasetSpec submitted_dataset_;
  const int first_rank_;
  SerialObserver observer_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::atomic<Communicator*> group_{nullptr};  // One of them, once there are.

  OpenedDataset data_;
  DataDigest data_digest_;                         // Empty without checkpoints.
  std::map<std::string, Tensor> initial_weights_;  // By name; those that a checkpoint does not stand for.
  int64_t planned_bytes_ = 0;                      // Of one replica.
  bool told_of_first_steps_ = false;               // Of the first replica's thread.
  MemoryGroups planned_memory_;                    // The same, by what it is for.
  // The training samples as the source has them: data_.train's, or data_.train itself.
  const Dataset* unchanged_samples_ = nullptr;
  bool resident_ = false;  // Whether samples are planned to lie on the devices.
  // The last one holds; the one before it did until loads were measured.
  std::vector<std::unique_ptr<DealtSamples>> all_dealt_;
  std::atomic<const DealtSamples*> dealt_{nullptr};
  std::unique_ptr<LoadMeter> load_meter_;  // Null where loads are not to be measured.
  std::unique_ptr<LearningRate> learning_rate_;
  // What a checkpoint says, until the replicas have taken it.
  absl::optional<Resumption> resumed_;
  TrainingState state_;  // When Run began.
  TrainingLength length_;
  std::atomic<bool> pause_{false};
  std::unique_ptr<StepSchedule> schedule_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<CheckpointKeeper> keeper_;  // Null where nothing is kept.
  // Each made and used by its own thread while Run runs; the first is read by the others while they are
  // opened.
  std::vector<std::unique_ptr<Replica>> replicas_;
  // On the first worker, when training has ended: what those of others keep, in the order of ranks.
  Snapshot others_;

  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Of this worker's replicas, those that are open, in the order of ranks; after a failure, that they need
  // not wait.
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the replica that takes most.
  int64_t replica_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool completed_ ABSL_GUARDED_BY(mutex_) = true;
  TrainingOutcome outcome_ ABSL_GUARDED_BY(mutex_);
  bool population_statistics_ ABSL_GUARDED_BY(mutex_) = false;  // As TrainingState has it.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_WORKER_TRAINER_H_
