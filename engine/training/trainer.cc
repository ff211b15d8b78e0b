#include "engine/training/trainer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/base/env.h"
#include "engine/base/field_violations.h"
#include "engine/base/memory_error.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/local/local_group.h"
#include "engine/data/augment/augmenter.h"
#include "engine/data/dataset.h"
#include "engine/optimizers/optimizer.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/checkpoint_keeper.h"
#include "engine/training/dealt_samples.h"
#include "engine/training/initial_weights.h"
#include "engine/training/load_meter.h"
#include "engine/training/model_file.h"
#include "engine/training/notices.h"
#include "engine/training/plan.h"
#include "engine/training/replica.h"
#include "engine/training/replica_spec.h"
#include "engine/training/reporter.h"
#include "engine/training/resumption.h"
#include "engine/training/serial_observer.h"
#include "engine/training/snapshot.h"
#include "engine/training/step_schedule.h"
#include "engine/training/training_state.h"

namespace tandem {
namespace {

// Replicas as threads of one process. What they share is made by Run, before they start.
class LocalTrainer final : public Trainer {
 public:
  // `submitted` is the data set as the job names it, which may be without the source that options.spec has.
  LocalTrainer(Options options, v1::DatasetSpec submitted)
      : options_(std::move(options)),
        submitted_dataset_(std::move(submitted)),
        observer_(options_.observer),
        communicators_(CreateLocalGroup(static_cast<int>(options_.devices.size()), options_.watchdog)),
        replicas_(options_.devices.size()) {}

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
  int count() const { return static_cast<int>(replicas_.size()); }
  const DealtSamples& dealt() const { return *dealt_.load(); }
  void Deal(std::vector<double> loads) {
    all_dealt_.push_back(std::make_unique<DealtSamples>(options_.spec, data_.info, std::move(loads)));
    dealt_ = all_dealt_.back().get();
  }

  absl::Status OpenData();
  absl::Status OpenWeights();
  // Takes what the checkpoint has, where there is one.
  absl::Status Resume();
  // What replicas share, and what begins where the checkpoint ended.
  void Prepare();
  // A replica's thread.
  void RunReplica(int rank);
  absl::Status OpenReplica(int rank);
  // Tells the observer what a person should know.
  void TellOfStart();
  absl::Status Train(int rank);
  // What comes after `steps` steps, the replicas having added what they measured: all of them call this. True
  // where training ends.
  absl::StatusOr<bool> Settle(int rank, int64_t steps, const AfterStep& after);
  TrainingOutcome OutcomeOf(const AfterStep& after) const;
  // Gives what a replica keeps to be written. That it is finite is seen before: no later step's loss would
  // say that the last update was too large.
  absl::Status Keep(int rank, int64_t steps, CheckpointKeeper::Purpose purpose);
  // That what training ends with is finite.
  absl::Status CheckModel() const;
  // Adds to an error of the numbers from which checkpoint the job would go on.
  absl::Status WithCheckpoint(absl::Status status) const;
  // Measures the replica after `step`, where that is to be done, and deals by the loads that follow: all
  // replicas call this.
  absl::Status MeasureLoads(int rank, int64_t step);

  absl::StatusOr<Snapshot> TakeSnapshot() const;
  absl::Status WriteModelOf(const Snapshot& snapshot, const std::string& path) const;

  // Ends the training with the first error that comes here.
  void Fail(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status failure() const {
    MutexLock lock(&mutex_);
    return failure_;
  }

  const Options options_;
  const v1::DatasetSpec submitted_dataset_;
  SerialObserver observer_;
  const std::vector<std::unique_ptr<Communicator>> communicators_;

  OpenedDataset data_;
  std::map<std::string, Tensor> initial_weights_;  // By name; those that a checkpoint does not stand for.
  int64_t planned_bytes_ = 0;                      // Of one replica.
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

  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Replicas that are open, in the order of ranks; after a failure, that they need not wait.
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the replica that takes most.
  int64_t replica_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool completed_ ABSL_GUARDED_BY(mutex_) = true;
  TrainingOutcome outcome_ ABSL_GUARDED_BY(mutex_);
};

void LocalTrainer::Fail(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = status;
  }
  failed_.store(true, std::memory_order_release);
  communicators_[0]->Abort(status);
}

absl::Status LocalTrainer::OpenData() {
  absl::StatusOr<OpenedDataset> opened = OpenDataset(options_.dataset);
  if (!opened.ok()) return absl::DataLossError(opened.status().message());
  data_ = *std::move(opened);
  // The job for itself was checked when the trainer was made.
  const absl::StatusOr<JobPlan> plan = PlanJob(options_.spec, data_.info);
  if (!plan.ok()) return absl::DataLossError(plan.status().message());
  planned_bytes_ = plan->replica_memory_bytes;
  data_.train = Augment(std::move(data_.train), options_.dataset.augmentation(), data_.info,
                        options_.spec.training().seed());
  return absl::OkStatus();
}

absl::Status LocalTrainer::Resume() {
  TANDEM_ASSIGN_OR_RETURN(
      resumed_, OpenCheckpoint(options_.env, options_.checkpoint_path, options_.spec.replicas(), count()));
  if (!resumed_.has_value()) return absl::OkStatus();
  state_ = resumed_->state;
  if (!resumed_->notice.empty()) observer_.OnNotice(resumed_->notice);
  return absl::OkStatus();
}

void LocalTrainer::Prepare() {
  const v1::Training& training = options_.spec.training();
  std::vector<std::string> devices;
  for (const v1::Device& device : options_.devices) devices.push_back(device.name());
  std::vector<double> loads = LoadsOf(options_.spec.replicas());
  if (options_.spec.replicas().auto_worker_load()) {
    if (state_.loads.size() == loads.size()) {
      loads = state_.loads;
    } else if (count() > 1) {
      load_meter_ = std::make_unique<LoadMeter>(devices, state_.step);
    }
  }
  Deal(std::move(loads));
  const bool validates = dealt().validation != nullptr;
  length_ = dealt().length;
  learning_rate_ = std::make_unique<LearningRate>(
      LearningRate::Options{.schedule = training.schedule(),
                            .learning_rate = LearningRateOf(training.optimizer()),
                            .steps_per_epoch = length_.steps_per_epoch,
                            .steps = length_.steps,
                            .replicas = count()});
  schedule_ = std::make_unique<StepSchedule>(
      options_.spec, StepSchedule::Options{.length = length_,
                                           .replicas = count(),
                                           .validates = validates,
                                           .first_step = state_.step,
                                           .seconds_before = state_.summary.training_seconds() +
                                                             state_.summary.validation_seconds(),
                                           .pause = &pause_,
                                           .clock = options_.clock,
                                           .reports_after = [averaging = &dealt().averaging](int64_t step) {
                                             return averaging->ReportsAfter(step);
                                           }});
  reporter_ =
      std::make_unique<Reporter>(options_.spec, length_, std::move(devices), validates, learning_rate_.get(),
                                 &dealt().averaging, options_.clock, &observer_);
  reporter_->SetLoads(dealt().loads);
  if (resumed_.has_value()) reporter_->Restore(state_);
  if (options_.checkpoint_path.empty() && options_.best_path.empty()) return;
  keeper_ = std::make_unique<CheckpointKeeper>(CheckpointKeeper::Options{
      .env = options_.env,
      .checkpoint_path = options_.checkpoint_path,
      .best_path = options_.best_path,
      .replicas = count(),
      .save_model = [this](const std::string& path,
                           const Snapshot& snapshot) { return WriteModelOf(snapshot, path); },
      .observer = &observer_,
      .clock = options_.clock,
      .last_step = state_.step});
}

absl::Status LocalTrainer::OpenWeights() {
  // A checkpoint has more than they are.
  if (!options_.spec.has_initial_weights() || resumed_.has_value()) return absl::OkStatus();
  absl::StatusOr<std::map<std::string, Tensor>> weights =
      ReadInitialWeights(options_.spec, options_.initial_weights_path);
  if (!weights.ok()) return absl::DataLossError(weights.status().message());
  initial_weights_ = *std::move(weights);
  observer_.OnNotice(WeightsNotice(options_.spec.initial_weights(), initial_weights_.size()));
  return absl::OkStatus();
}

absl::Status LocalTrainer::Run() {
  if (failed()) return failure();
  TANDEM_RETURN_IF_ERROR(CatchNoMemory([this] { return OpenData(); }));
  TANDEM_RETURN_IF_ERROR(CatchNoMemory([this] { return Resume(); }));
  TANDEM_RETURN_IF_ERROR(CatchNoMemory([this] { return OpenWeights(); }));
  Prepare();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count(); ++rank) threads.emplace_back([this, rank] { RunReplica(rank); });
  for (std::thread& thread : threads) thread.join();
  if (keeper_ != nullptr) keeper_->Flush();
  {
    MutexLock lock(&mutex_);
    if (!completed_) return WithCheckpoint(failure_);
  }
  return WithCheckpoint(CatchNoMemory([this] { return CheckModel(); }));
}

absl::Status LocalTrainer::CheckModel() const {
  TANDEM_ASSIGN_OR_RETURN(const Snapshot snapshot, TakeSnapshot());
  for (const ReplicaVariables& variables : snapshot) {
    TANDEM_RETURN_IF_ERROR(CheckFinite(variables, reporter_->Summary().steps()));
  }
  return absl::OkStatus();
}

absl::Status LocalTrainer::WithCheckpoint(absl::Status status) const {
  if (!absl::IsOutOfRange(status) || keeper_ == nullptr || options_.spec.checkpoints().off()) return status;
  const int64_t step = keeper_->last_step();
  return absl::OutOfRangeError(absl::StrCat(
      status.message(), step == 0 ? "; there is no checkpoint from before"
                                  : absl::StrCat("; the last good checkpoint is that of step ", step)));
}

v1::TrainingSummary LocalTrainer::Summary() const {
  v1::TrainingSummary summary;
  if (reporter_ != nullptr) summary = reporter_->Summary();
  if (keeper_ != nullptr) summary.set_checkpoint_step(keeper_->last_step());
  return summary;
}

void LocalTrainer::RunReplica(int rank) {
  absl::Status status = CatchNoMemory([this, rank]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(OpenReplica(rank));
    return Train(rank);
  });
  if (status.ok()) return;
  if (count() > 1 && !failed()) {
    // Which of several devices gave trouble matters; the reports' own errors are of all of them.
    const bool shared = absl::IsOutOfRange(status);
    if (!shared) {
      status = absl::Status(
          status.code(),
          absl::StrCat("replica ", rank, " on ", options_.devices[rank].name(), ": ", status.message()));
    }
  }
  Fail(status);
  MutexLock lock(&mutex_);
  completed_ = false;
  opened_ = count();
}

// In the order of ranks: the first decides how variables are laid out.
absl::Status LocalTrainer::OpenReplica(int rank) {
  {
    MutexLock lock(&mutex_);
    const auto turn = [this, rank]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return opened_ >= rank; };
    mutex_.Await(absl::Condition(&turn));
    if (!failure_.ok()) return failure_;
  }
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, options_.device_factory(options_.devices[rank]));
  const ReplicaContext context{.spec = &options_.spec,
                               .data = &data_,
                               .dealt = &dealt(),
                               .learning_rate = learning_rate_.get(),
                               .initial_weights = &initial_weights_,
                               .first_step = state_.step,
                               .steps = length_.steps};
  replicas_[rank] = std::make_unique<Replica>(context, std::move(device), communicators_[rank].get());
  TANDEM_RETURN_IF_ERROR(replicas_[rank]->Open(rank == 0 ? nullptr : replicas_[0].get()));
  MutexLock lock(&mutex_);
  replica_bytes_ = std::max(replica_bytes_, replicas_[rank]->bytes());
  ++opened_;
  return absl::OkStatus();
}

void LocalTrainer::TellOfStart() {
  int64_t bytes = 0;
  {
    MutexLock lock(&mutex_);
    bytes = replica_bytes_;
  }
  const v1::Schedule& schedule = options_.spec.training().schedule();
  for (const std::string& notice :
       {MemoryNotice(bytes, planned_bytes_), ScalingNotice(schedule, count(), learning_rate_->Rate(0))}) {
    if (!notice.empty()) observer_.OnNotice(notice);
  }
}

absl::Status LocalTrainer::Train(int rank) {
  Replica& replica = *replicas_[rank];
  if (resumed_.has_value()) {
    TANDEM_RETURN_IF_ERROR(replica.RestoreVariables(TensorsOfReplica(resumed_->tensors, rank)));
  } else {
    TANDEM_RETURN_IF_ERROR(replica.InitializeParameters());
  }
  TANDEM_RETURN_IF_ERROR(communicators_[rank]->Barrier());
  if (rank == 0) {
    // All have taken what is theirs.
    resumed_.reset();
    initial_weights_.clear();
    reporter_->Start();
    TellOfStart();
    schedule_->Start();
    MutexLock lock(&mutex_);
    outcome_ = state_.end;
    if (state_.step >= length_.steps) outcome_.reason = v1::STATE_REASON_COMPLETED;
  }
  TANDEM_RETURN_IF_ERROR(communicators_[rank]->Barrier());
  if (state_.end.reason != v1::STATE_REASON_UNSPECIFIED) return absl::OkStatus();
  for (int64_t step = state_.step; step < length_.steps; ++step) {
    if (failed()) return failure();
    TANDEM_RETURN_IF_ERROR(replica.TrainStep(step));
    if (load_meter_ != nullptr) TANDEM_RETURN_IF_ERROR(MeasureLoads(rank, step));
    const AfterStep after = schedule_->After(step);
    if (!after.report) continue;
    TANDEM_ASSIGN_OR_RETURN(Measurement training, replica.TakeTraining());
    TANDEM_RETURN_IF_ERROR(reporter_->AddTraining(rank, step + 1, after, std::move(training)));
    if (after.validate) {
      TANDEM_ASSIGN_OR_RETURN(Measurement validation,
                              replica.Validate(step + 1, [this] { return failed(); }));
      TANDEM_RETURN_IF_ERROR(reporter_->AddValidation(rank, step + 1, after, std::move(validation)));
    }
    if (after.settles()) {
      TANDEM_ASSIGN_OR_RETURN(const bool ends, Settle(rank, step + 1, after));
      if (ends) break;
      if (rank == 0 && after.validate) schedule_->Restart();
    }
    // One that steps alone might report again before the others have taken note.
    if (dealt().averaging.steps_alone()) TANDEM_RETURN_IF_ERROR(communicators_[rank]->Barrier());
  }
  return absl::OkStatus();
}

TrainingOutcome LocalTrainer::OutcomeOf(const AfterStep& after) const {
  if (after.end == v1::STATE_REASON_COMPLETED) {
    return {after.end,
            options_.spec.training().steps() > 0 ? "All steps were trained." : "All epochs were trained."};
  }
  TrainingOutcome early = reporter_->EarlyEnd();
  if (early.reason != v1::STATE_REASON_UNSPECIFIED) return early;
  if (after.end == v1::STATE_REASON_TIME_LIMIT) {
    return {after.end,
            absl::StrCat("Training has taken the ", options_.spec.training().early_stopping().max_seconds(),
                         " s that it was given.")};
  }
  return {after.end, ""};
}

absl::StatusOr<bool> LocalTrainer::Settle(int rank, int64_t steps, const AfterStep& after) {
  // What all replicas measured decides what follows.
  TANDEM_RETURN_IF_ERROR(communicators_[rank]->Barrier());
  const TrainingOutcome outcome = OutcomeOf(after);
  const bool ends = outcome.reason != v1::STATE_REASON_UNSPECIFIED;
  const bool pauses = outcome.reason == v1::STATE_REASON_PAUSE_REQUESTED;
  if (rank == 0) {
    if (ends && !pauses && !after.ends_epoch) reporter_->CloseEpoch();
    MutexLock lock(&mutex_);
    outcome_ = outcome;
  }
  const CheckpointKeeper::Purpose purpose = {
      .checkpoint = (after.checkpoint || ends) && !options_.spec.checkpoints().off() &&
                    !options_.checkpoint_path.empty(),
      .best = reporter_->Improved() && options_.spec.training().best_model().keep_weights() &&
              !options_.best_path.empty()};
  if (purpose.checkpoint || purpose.best) TANDEM_RETURN_IF_ERROR(Keep(rank, steps, purpose));
  return ends;
}

absl::Status LocalTrainer::Keep(int rank, int64_t steps, CheckpointKeeper::Purpose purpose) {
  TANDEM_ASSIGN_OR_RETURN(ReplicaVariables variables,
                          replicas_[rank]->ReadVariables(dealt().averaging.AlikeAfter(steps)));
  TANDEM_RETURN_IF_ERROR(CheckFinite(variables, steps));
  keeper_->Add(rank, std::move(variables), purpose, [this] {
    TrainingState state = reporter_->State();
    // Loads that are still to be measured are none.
    if (load_meter_ == nullptr || all_dealt_.size() > 1) state.loads = dealt().loads;
    MutexLock lock(&mutex_);
    state.end = outcome_.reason == v1::STATE_REASON_PAUSE_REQUESTED ? TrainingOutcome() : outcome_;
    return state;
  });
  return absl::OkStatus();
}

absl::Status LocalTrainer::MeasureLoads(int rank, int64_t step) {
  Communicator& communicator = *communicators_[rank];
  if (!load_meter_->Measure(rank, step, replicas_[rank]->speed())) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(communicator.Barrier());
  if (rank == 0) {
    const v1::WorkerLoads loads = load_meter_->Loads(step + 1, dealt().train->BatchSamples(0));
    std::vector<double> values;
    for (const v1::ReplicaLoad& replica : loads.replicas()) values.push_back(replica.load());
    reporter_->SetLoads(values);
    Deal(std::move(values));
    observer_.OnWorkerLoads(loads);
  }
  // One after the other, as algorithms are timed while they compile.
  for (int turn = 0; turn <= count(); ++turn) {
    TANDEM_RETURN_IF_ERROR(communicator.Barrier());
    if (turn == rank) TANDEM_RETURN_IF_ERROR(replicas_[rank]->Redeal(&dealt(), step + 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> LocalTrainer::TakeSnapshot() const {
  Snapshot snapshot;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica == nullptr) return absl::FailedPreconditionError("there is no model before training");
    TANDEM_ASSIGN_OR_RETURN(
        snapshot.emplace_back(),
        replica->ReadVariables(dealt().averaging.AlikeAfter(reporter_->Summary().steps())));
  }
  return snapshot;
}

absl::Status LocalTrainer::WriteModelOf(const Snapshot& snapshot, const std::string& path) const {
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<NamedTensor> tensors,
      ModelTensors(snapshot, options_.spec.training().has_weight_average(), dealt().averaging.Shares()));
  v1::JobSpec spec = options_.spec;
  *spec.mutable_dataset() = submitted_dataset_;
  SettleLoads(dealt().loads, spec.mutable_replicas());
  return WriteModel(options_.env, path, spec, tensors,
                    {.sample_type = data_.info.sample_type,
                     .normalization = data_.info.normalization,
                     .class_names = data_.info.class_names,
                     .resize = ResizeOf(options_.dataset)});
}

absl::Status LocalTrainer::SaveModel(const std::string& path) const {
  if (options_.spec.training().best_model().export_best() && !options_.best_path.empty()) {
    TANDEM_ASSIGN_OR_RETURN(const std::string best, options_.env->ReadFile(options_.best_path));
    return WriteFileAtomically(options_.env, path, [&](WritableFile& file) { return file.Append(best); });
  }
  TANDEM_ASSIGN_OR_RETURN(const Snapshot snapshot, TakeSnapshot());
  return WriteModelOf(snapshot, path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Options options) {
  v1::DatasetSpec submitted = options.spec.dataset();
  *options.spec.mutable_dataset() = options.dataset;
  FillDefaults(&options.spec);
  TANDEM_RETURN_IF_ERROR(CheckJob(options.spec));
  if (const size_t replicas = LoadsOf(options.spec.replicas()).size(); replicas != options.devices.size()) {
    return FieldError("replicas.count", absl::StrCat("asks for ", replicas, " that compute, but ",
                                                     options.devices.size(), " devices were given"));
  }
  if (options.device_factory == nullptr) return absl::InvalidArgumentError("a device factory is needed");
  return std::make_unique<LocalTrainer>(std::move(options), std::move(submitted));
}

}  // namespace tandem
