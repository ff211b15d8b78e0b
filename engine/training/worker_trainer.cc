#include "engine/training/worker_trainer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/file_pieces.h"
#include "engine/base/memory_error.h"
#include "engine/base/random_access_env.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/collectives/local/local_group.h"
#include "engine/data/augment/augmenter.h"
#include "engine/data/sampler.h"
#include "engine/data/statistics.h"
#include "engine/losses/loss.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/fit_data.h"
#include "engine/training/gathering.h"
#include "engine/training/initial_weights.h"
#include "engine/training/launch_size.h"
#include "engine/training/model_file.h"
#include "engine/training/notices.h"
#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"
#include "engine/training/signal_line.h"
#include "engine/training/step_graph.h"
#include "engine/training/targets.h"
#include "engine/training/trained_model.h"

namespace tandem {
namespace {

// After this many steps, devices have settled how they run steps.
constexpr int64_t kFirstSteps = 3;

// Adds the plan to an error about memory.
absl::Status WithPlan(const absl::Status& status, const MemoryGroups& planned) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      status.message(), "; planned were ", MebibytesOf(planned.total()), " (", planned.ToString(), ")"));
}

}  // namespace

void WorkerTrainer::Fail(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = status;
  }
  failed_.store(true, std::memory_order_release);
  if (Communicator* const group = group_.load(); group != nullptr) group->Abort(status);
}

absl::Status WorkerTrainer::Connect() {
  if (spread()) {
    TANDEM_ASSIGN_OR_RETURN(communicators_, options_.group.connect(first_rank_, local_count()));
  } else {
    communicators_ = CreateLocalGroup(count(), options_.watchdog);
  }
  group_.store(communicators_[0].get());
  return failed() ? failure() : absl::OkStatus();
}

absl::StatusOr<std::optional<DataNames>> WorkerTrainer::NamesOfModel() const {
  if (resumed_.has_value()) return state_.names;
  if (!options_.spec.has_initial_weights()) return std::optional<DataNames>();
  absl::StatusOr<DataNames> names = NamesOfInitialWeights(options_.spec, options_.initial_weights_path);
  if (!names.ok()) return absl::DataLossError(names.status().message());
  return std::optional<DataNames>(*std::move(names));
}

absl::Status WorkerTrainer::OpenData() {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<DataNames> names, NamesOfModel());
  absl::StatusOr<OpenedDataset> opened =
      OpenDataset(FitData(options_.spec, options_.dataset), names.has_value() ? &*names : nullptr);
  if (!opened.ok()) return absl::DataLossError(opened.status().message());
  data_ = *std::move(opened);
  for (const std::string& notice : data_.info.notices) observer_.OnNotice(notice);
  if (const std::string notice = LayoutNotice(options_.spec.model()); !notice.empty()) {
    observer_.OnNotice(notice);
  }
  if (options_.dataset.train_limit() > 0) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountClasses(*data_.train, data_.info));
    const std::string notice = OneClassNotice(options_.dataset, counts);
    if (!notice.empty()) observer_.OnNotice(notice);
  }
  if (!options_.checkpoint_folder.empty() && (resumed_.has_value() || !options_.spec.checkpoints().off())) {
    absl::StatusOr<DataDigest> digest = DigestData(options_.dataset);
    if (!digest.ok()) return absl::DataLossError(digest.status().message());
    data_digest_ = *std::move(digest);
    const std::string notice = ChangedDataNotice(state_.step, ChangedFields(state_.data, data_digest_));
    if (!notice.empty()) {
      observer_.OnNotice(notice);
      NoteNormalization();
    }
  }
  if (options_.spec.training().loss().softmax_cross_entropy().balance_classes()) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountClasses(*data_.train, data_.info));
    BalanceClasses(counts, options_.spec.mutable_training()->mutable_loss());
  }
  // Create checked the job without its data.
  const absl::StatusOr<JobPlan> plan = PlanJob(options_.spec, data_.info);
  if (!plan.ok()) return absl::DataLossError(plan.status().message());
  for (const auto& [name, split] :
       {std::pair("training", data_.train.get()), std::pair("validation", data_.validation.get())}) {
    if (split == nullptr) continue;
    TANDEM_ASSIGN_OR_RETURN(const std::string fault,
                            TargetRangeFault(options_.spec.training().loss(), *split, data_.info));
    if (fault.empty()) continue;
    return absl::DataLossError(absl::StrCat("cannot train on the ", name, " samples: their targets ", fault));
  }
  if (options_.spec.training().balance_samples()) {
    TANDEM_ASSIGN_OR_RETURN(
        ClassSamples classes,
        SamplesOfClasses(*data_.train, data_.info, IgnoreIndexOf(options_.spec.training().loss())));
    classes_ = std::make_shared<const ClassSamples>(std::move(classes));
    if (classes_->empty()) {
      return absl::DataLossError(
          "cannot balance the training samples: the loss ignores the targets of all of them");
    }
  }
  planned_bytes_ = plan->replica_memory_bytes;
  planned_memory_ = plan->memory;
  resident_ = plan->resident_bytes > 0;
  unchanged_samples_ = data_.train.get();
  data_.train = Augment(std::move(data_.train), options_.dataset.augmentation(), data_.info,
                        options_.spec.training().seed());
  return absl::OkStatus();
}

absl::Status WorkerTrainer::Resume() {
  TANDEM_ASSIGN_OR_RETURN(
      resumed_, OpenCheckpoint(options_.env, options_.checkpoint_folder, options_.spec.replicas(), count(),
                               /*sets_aside=*/options_.group.worker == 0));
  if (!resumed_.has_value()) return absl::OkStatus();
  state_ = resumed_->state;
  for (const std::string& notice : resumed_->notices) observer_.OnNotice(notice);
  if (!options_.spec.training().best_model().keep_weights() || options_.best_path.empty()) {
    return absl::OkStatus();
  }
  const auto best = options_.env->OpenRandomAccess(options_.best_path, RandomAccessEnv::Open::kReadOnly);
  if (state_.summary.has_best() && absl::IsNotFound(best.status())) {
    observer_.OnNotice(absl::StrCat("The model with the best result so far, of step ",
                                    state_.summary.best().step(),
                                    ", is not there: the best of the results that follow is kept."));
    state_.summary.clear_best();
  }
  return absl::OkStatus();
}

absl::Status WorkerTrainer::Prepare() {
  const v1::Training& training = options_.spec.training();
  std::vector<std::string> devices;
  for (const v1::Device& device : options_.devices) devices.push_back(device.name());
  std::vector<double> loads = LoadsOf(options_.spec.replicas());
  if (options_.spec.replicas().auto_worker_load()) {
    if (state_.loads.size() == loads.size() && CheckLoads(state_.loads).ok()) {
      loads = state_.loads;
    } else if (count() > 1) {
      load_meter_ = std::make_unique<LoadMeter>(devices, state_.step);
    }
  }
  Deal(std::move(loads));
  const bool validates = dealt().validation != nullptr;
  length_ = dealt().length;
  if (state_.step > length_.steps) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot continue from the checkpoint of step ", state_.step, " in ", options_.checkpoint_folder,
        ": the job ends with step ", length_.steps, "; raise ",
        training.steps() > 0 ? "training.steps" : "training.epochs", ", or start in another folder"));
  }
  if (resumed_.has_value()) {
    const bool other_data = state_.data != data_digest_;
    const std::string notice = ResultsNotice(state_, training, validates, other_data);
    if (!notice.empty()) {
      observer_.OnNotice(notice);
      ForgetResults(&state_);
    }
    ForgetOtherAims(training, &state_);
  }
  if (!StillEnds(state_, training, length_)) state_.end = {};
  if (const std::string notice = EpochsNotice(state_, length_); !notice.empty()) observer_.OnNotice(notice);
  learning_rate_ = std::make_unique<LearningRate>(
      LearningRate::Options{.schedule = training.schedule(),
                            .learning_rate = LearningRateOf(training.optimizer()),
                            .steps_per_epoch = length_.steps_per_epoch,
                            .steps = length_.steps,
                            .epoch_shift = length_.epoch_shift,
                            .replicas = count()});
  schedule_ = std::make_unique<StepSchedule>(
      options_.spec, StepSchedule::Options{.length = length_,
                                           .replicas = local_count(),
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
  if (data_.info.preparation.has_value()) {
    reporter_->SetTargetDeviation(data_.info.preparation->target_deviation());
  }
  if (resumed_.has_value()) reporter_->Restore(state_);
  if (options_.group.worker != 0) return absl::OkStatus();
  if (options_.checkpoint_folder.empty() && options_.best_path.empty()) return absl::OkStatus();
  if (!options_.checkpoint_folder.empty()) {
    RemoveUnfinishedCheckpoints(options_.env, options_.checkpoint_folder);
  }
  keeper_ = std::make_unique<CheckpointKeeper>(CheckpointKeeper::Options{
      .env = options_.env,
      .checkpoint_folder = options_.checkpoint_folder,
      .checkpoints = options_.spec.checkpoints(),
      .best_path = options_.best_path,
      .replicas = count(),
      .save_model = [this](const std::string& path, const Snapshot& snapshot,
                           const v1::BestResult& best) { return WriteModelOf(snapshot, path, best); },
      .observer = &observer_,
      .clock = options_.clock,
      .last_step = state_.step});
  return absl::OkStatus();
}

absl::Status WorkerTrainer::OpenWeights() {
  // A checkpoint replaces the initial weights.
  if (!options_.spec.has_initial_weights() || resumed_.has_value()) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(CheckModelSha256(options_.initial_weights_path, options_.initial_weights_sha256));
  absl::StatusOr<std::map<std::string, Tensor>> weights =
      ReadInitialWeights(options_.spec, options_.initial_weights_path);
  if (!weights.ok()) return absl::DataLossError(weights.status().message());
  initial_weights_ = *std::move(weights);
  observer_.OnNotice(WeightsNotice(options_.spec.initial_weights(), initial_weights_.size()));
  NoteNormalization();
  return absl::OkStatus();
}

void WorkerTrainer::NoteNormalization() {
  const std::string notice = NormalizationNotice(options_.dataset);
  if (!notice.empty()) observer_.OnNotice(notice);
}

absl::Status WorkerTrainer::Begin() {
  if (failed()) return failure();
  // The connection comes first, so that workers learn of each other's failures.
  TANDEM_RETURN_IF_ERROR(Connect());
  const absl::Status opened = CatchNoMemory([this]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(Resume());
    TANDEM_RETURN_IF_ERROR(OpenData());
    return OpenWeights();
  });
  if (opened.ok() || !spread()) return opened;
  communicators_[0]->Abort(options_.group.worker == 0
                               ? opened
                               : absl::Status(opened.code(), absl::StrCat("worker ", options_.group.worker,
                                                                          ": ", opened.message())));
  // Any worker's error becomes the error of all.
  return communicators_[0]->Barrier();
}

absl::Status WorkerTrainer::Run() {
  TANDEM_RETURN_IF_ERROR(Begin());
  TANDEM_RETURN_IF_ERROR(Prepare());
  std::vector<std::thread> threads;
  for (int local = 0; local < local_count(); ++local)
    threads.emplace_back([this, local] { RunReplica(local); });
  for (std::thread& thread : threads) thread.join();
  if (keeper_ != nullptr) keeper_->Flush();
  {
    MutexLock lock(&mutex_);
    if (!completed_) return WithCheckpoint(failure_);
  }
  return WithCheckpoint(CatchNoMemory([this] { return CheckModel(); }));
}

absl::Status WorkerTrainer::CheckModel() const {
  TANDEM_ASSIGN_OR_RETURN(const Snapshot snapshot, TakeSnapshot());
  for (const ReplicaVariables& variables : snapshot) {
    TANDEM_RETURN_IF_ERROR(CheckFinite(variables, reporter_->Summary().steps()));
  }
  return absl::OkStatus();
}

absl::Status WorkerTrainer::WithCheckpoint(absl::Status status) const {
  if (!absl::IsOutOfRange(status) || keeper_ == nullptr || options_.spec.checkpoints().off()) return status;
  const int64_t step = keeper_->last_step();
  return absl::OutOfRangeError(absl::StrCat(
      status.message(), step == 0 ? "; there is no checkpoint from before"
                                  : absl::StrCat("; the last good checkpoint is that of step ", step)));
}

v1::TrainingSummary WorkerTrainer::Summary() const {
  v1::TrainingSummary summary;
  if (reporter_ != nullptr) summary = reporter_->Summary();
  if (keeper_ != nullptr) summary.set_checkpoint_step(keeper_->last_step());
  return summary;
}

void WorkerTrainer::RunReplica(int local) {
  absl::Status status = CatchNoMemory([this, local]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(OpenInTurn(local));
    return Train(local);
  });
  const bool ends_group = !status.ok() && count() > 1 && !failed();
  if (ends_group) {
    // The rank matters if a device failed. Errors of the reports concern all ranks.
    const bool shared = absl::IsOutOfRange(status);
    if (!shared) {
      const int rank = first_rank_ + local;
      status = absl::Status(
          status.code(),
          absl::StrCat("replica ", rank, " on ", options_.devices[rank].name(), ": ", status.message()));
    }
    // Abort comes first, because the device may wait for ranks that wait for this rank.
    communicators_[local]->Abort(status);
  }
  // Unfinished work of a device may use the memory of others. That memory is freed after all threads are
  // here.
  if (replicas_[local] != nullptr) replicas_[local]->Wait();
  if (status.ok()) return;
  // The first error of all workers counts.
  if (ends_group) status = communicators_[local]->Barrier();
  Fail(status);
  MutexLock lock(&mutex_);
  completed_ = false;
  opened_ = local_count();
}

absl::Status WorkerTrainer::OpenInTurn(int local) {
  for (int worker = 0; worker < options_.group.workers; ++worker) {
    if (worker == options_.group.worker)
      TANDEM_RETURN_IF_ERROR(WithPlan(OpenReplica(local), planned_memory_));
    if (spread()) TANDEM_RETURN_IF_ERROR(communicators_[local]->Barrier());
  }
  return absl::OkStatus();
}

// Opens in the order of ranks, because the first rank decides the layouts of variables.
absl::Status WorkerTrainer::OpenReplica(int local) {
  {
    MutexLock lock(&mutex_);
    const auto turn = [this, local]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return opened_ >= local; };
    mutex_.Await(absl::Condition(&turn));
    if (!failure_.ok()) return failure_;
  }
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                          options_.device_factory(options_.devices[first_rank_ + local]));
  const ReplicaContext context{.spec = &options_.spec,
                               .data = &data_,
                               .unchanged_samples = unchanged_samples_,
                               .resident = resident_,
                               .dealt = &dealt(),
                               .learning_rate = learning_rate_.get(),
                               .initial_weights = &initial_weights_,
                               .first_step = state_.step,
                               .steps = length_.steps};
  replicas_[local] = std::make_unique<Replica>(context, std::move(device), communicators_[local].get());
  TANDEM_RETURN_IF_ERROR(replicas_[local]->Open(local == 0 ? nullptr : replicas_[0].get()));
  MutexLock lock(&mutex_);
  replica_bytes_ = std::max(replica_bytes_, replicas_[local]->bytes());
  ++opened_;
  return absl::OkStatus();
}

void WorkerTrainer::TellOfStart() {
  int64_t bytes = 0;
  {
    MutexLock lock(&mutex_);
    bytes = replica_bytes_;
  }
  const v1::Schedule& schedule = options_.spec.training().schedule();
  std::string no_memory;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (no_memory.empty()) no_memory = replica->why_not_resident();
  }
  for (const std::string& notice :
       {MemoryNotice(bytes, planned_bytes_), ScalingNotice(schedule, count(), learning_rate_->Rate(0)),
        DataNotice(options_.spec, data_.info, resident_, no_memory)}) {
    if (!notice.empty()) observer_.OnNotice(notice);
  }
}

void WorkerTrainer::TellOfFirstSteps() {
  told_of_first_steps_ = true;
  const std::string notice = replicas_[0]->notice();
  if (!notice.empty()) observer_.OnNotice(notice);
}

absl::Status WorkerTrainer::FillReplica(int local) {
  Replica& replica = *replicas_[local];
  if (spread() || !resumed_.has_value()) TANDEM_RETURN_IF_ERROR(replica.InitializeParameters());
  if (spread()) {
    TANDEM_ASSIGN_OR_RETURN(const double digest, replica.ParametersDigest());
    TANDEM_RETURN_IF_ERROR(CheckBeginsAlike(state_.step, digest, communicators_[local].get()));
  }
  if (!resumed_.has_value()) return absl::OkStatus();
  return replica.RestoreVariables(TensorsOfReplica(resumed_->tensors, first_rank_ + local));
}

absl::Status WorkerTrainer::Train(int local) {
  TANDEM_RETURN_IF_ERROR(FillReplica(local));
  Communicator& communicator = *communicators_[local];
  TANDEM_RETURN_IF_ERROR(communicator.Barrier());
  if (local == 0) {
    // All replicas have copied their state.
    const absl::optional<Resumption> resumed = std::exchange(resumed_, absl::nullopt);
    initial_weights_.clear();
    reporter_->Start();
    if (resumed.has_value()) observer_.OnResumed(resumed->checkpoint);
    TellOfStart();
    schedule_->Start();
    MutexLock lock(&mutex_);
    outcome_ = state_.end;
    if (state_.step >= length_.steps) outcome_.reason = v1::STATE_REASON_COMPLETED;
  }
  TANDEM_RETURN_IF_ERROR(communicator.Barrier());
  if (state_.end.reason == v1::STATE_REASON_UNSPECIFIED) TANDEM_RETURN_IF_ERROR(TakeSteps(local));
  const bool had_ended = state_.end.reason != v1::STATE_REASON_UNSPECIFIED || state_.step >= length_.steps;
  if (had_ended && WantsPopulationStatistics(options_.spec) && !state_.population_statistics) {
    // The job of the checkpoint did not want these statistics.
    TANDEM_RETURN_IF_ERROR(Finish(local, state_.step));
    if (KeepsBest()) TANDEM_RETURN_IF_ERROR(Keep(local, state_.step, {.best = true}));
  }
  if (!spread()) return absl::OkStatus();
  const Alike alike = dealt().averaging.AlikeAfter(reporter_->Summary().steps());
  TANDEM_ASSIGN_OR_RETURN(const ReplicaVariables own, replicas_[local]->ReadVariables(alike));
  TANDEM_ASSIGN_OR_RETURN(Snapshot others,
                          GatherVariables(own, alike, count() / options_.group.workers, &communicator));
  if (first_rank_ + local == 0) others_ = std::move(others);
  return absl::OkStatus();
}

int64_t WorkerTrainer::MostStepsFrom(int64_t step, int64_t size) const {
  // With several replicas or parts, the device gets a single step at a time anyway.
  const bool meets = options_.devices.size() > 1 && !dealt().averaging.steps_alone();
  if (meets || options_.spec.training().accumulation_steps() > 1) return 1;
  if (!resident_ || (load_meter_ != nullptr && step < state_.step + LoadMeter::kSteps)) return 1;
  int64_t most = 1;
  while (most < size && !dealt().averaging.AveragesAfter(step + most - 1)) ++most;
  return most;
}

absl::Status WorkerTrainer::TakeSteps(int local) {
  Replica& replica = *replicas_[local];
  SignalLine signals({.schedule = schedule_.get(),
                      .averaging = &dealt().averaging,
                      .clock = options_.clock,
                      .communicator = communicators_[local].get()});
  // Several workers must choose the same size without communication.
  const int64_t given = options_.spec.gpu().steps_per_launch();
  LaunchSize launch(spread() ? std::max<int64_t>(1, given) : given, options_.clock);
  bool looked = true;  // Whether a report followed the previous steps.
  for (int64_t next = state_.step; next < length_.steps;) {
    if (failed()) return failure();
    const int64_t steps = schedule_->StepsFrom(next, MostStepsFrom(next, launch.size()));
    replica.SetMeasured(load_meter_ != nullptr && next < state_.step + LoadMeter::kSteps);
    TANDEM_RETURN_IF_ERROR(replica.TrainSteps(next, steps));
    launch.Took(steps, looked);
    next += steps;
    if (local == 0 && !told_of_first_steps_ && next - state_.step >= kFirstSteps) TellOfFirstSteps();
    const int64_t step = next - 1;
    if (load_meter_ != nullptr) TANDEM_RETURN_IF_ERROR(MeasureLoads(local, step));
    TANDEM_ASSIGN_OR_RETURN(const AfterStep after, spread() ? signals.After(step) : schedule_->After(step));
    looked = after.report;
    if (!after.report) continue;
    TANDEM_ASSIGN_OR_RETURN(Measurement training, replica.TakeTraining());
    TANDEM_RETURN_IF_ERROR(Add(&Reporter::AddTraining, local, step + 1, after, std::move(training)));
    if (after.ends_training()) TANDEM_RETURN_IF_ERROR(TakeStatistics(local, step + 1));
    if (after.validate) {
      TANDEM_ASSIGN_OR_RETURN(Measurement validation,
                              replica.Validate(step + 1, [this] { return failed(); }));
      TANDEM_RETURN_IF_ERROR(Add(&Reporter::AddValidation, local, step + 1, after, std::move(validation)));
    }
    if (after.settles()) {
      TANDEM_ASSIGN_OR_RETURN(const bool ends, Settle(local, step + 1, after));
      if (ends) break;
      if (local == 0 && after.validate) schedule_->Restart();
    }
    // A replica that takes its own steps could report again before the others have seen the report.
    if (dealt().averaging.steps_alone()) TANDEM_RETURN_IF_ERROR(communicators_[local]->Barrier());
  }
  return absl::OkStatus();
}

absl::Status WorkerTrainer::Add(AddMethod add, int local, int64_t steps, const AfterStep& after,
                                Measurement own) {
  const int own_rank = first_rank_ + local;
  if (!spread()) return (reporter_.get()->*add)(own_rank, steps, after, std::move(own));
  TANDEM_ASSIGN_OR_RETURN(std::vector<Measurement> all, GatherMeasurements(own, communicators_[local].get()));
  for (int rank = 0; rank < count(); ++rank) {
    const bool is_elsewhere = rank < first_rank_ || rank >= first_rank_ + local_count();
    if (rank != own_rank && (local != 0 || !is_elsewhere)) continue;
    TANDEM_RETURN_IF_ERROR((reporter_.get()->*add)(rank, steps, after, std::move(all[rank])));
  }
  return absl::OkStatus();
}

TrainingOutcome WorkerTrainer::OutcomeOf(const AfterStep& after) const {
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

absl::StatusOr<bool> WorkerTrainer::Settle(int local, int64_t steps, const AfterStep& after) {
  // The measurements of all replicas decide.
  TANDEM_RETURN_IF_ERROR(communicators_[local]->Barrier());
  const TrainingOutcome outcome = OutcomeOf(after);
  const bool ends = outcome.reason != v1::STATE_REASON_UNSPECIFIED;
  const bool pauses = outcome.reason == v1::STATE_REASON_PAUSE_REQUESTED;
  if (local == 0) {
    if (ends && !pauses && !after.ends_epoch) reporter_->CloseEpoch();
    MutexLock lock(&mutex_);
    outcome_ = outcome;
  }
  if (ends && !pauses && !after.ends_training() && WantsPopulationStatistics(options_.spec)) {
    // The model keeps the statistics of its validation.
    if (after.validate && KeepsBest()) TANDEM_RETURN_IF_ERROR(Keep(local, steps, {.best = true}));
    TANDEM_RETURN_IF_ERROR(Finish(local, steps));
  }
  const v1::Checkpointing& checkpoints = options_.spec.checkpoints();
  const bool improved = reporter_->Improved();
  const CheckpointKeeper::Purpose purpose = {
      .checkpoint = (after.checkpoint || ends || (improved && checkpoints.keep_best())) &&
                    !checkpoints.off() && !options_.checkpoint_folder.empty(),
      .best = KeepsBest()};
  if (purpose.checkpoint || purpose.best) TANDEM_RETURN_IF_ERROR(Keep(local, steps, purpose));
  return ends;
}

absl::Status WorkerTrainer::TakeStatistics(int local, int64_t steps) {
  if (!WantsPopulationStatistics(options_.spec)) return absl::OkStatus();
  if (local == 0) observer_.OnNotice(StatisticsNotice(dealt().train->epoch_samples()));
  Replica& replica = *replicas_[local];
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> own,
                          replica.SumStatistics(steps, [this] { return failed(); }));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> all,
                          GatherNumbers(own, communicators_[local].get()));
  TANDEM_RETURN_IF_ERROR(replica.WriteStatistics(all));
  if (local != 0) return absl::OkStatus();
  reporter_->LeaveOut();
  MutexLock lock(&mutex_);
  population_statistics_ = true;
  return absl::OkStatus();
}

absl::Status WorkerTrainer::Finish(int local, int64_t steps) {
  TANDEM_RETURN_IF_ERROR(TakeStatistics(local, steps));
  if (dealt().validation == nullptr) return absl::OkStatus();
  const AfterStep after = {.validate = true, .is_finished = true};
  TANDEM_ASSIGN_OR_RETURN(Measurement validation,
                          replicas_[local]->Validate(steps, [this] { return failed(); }));
  TANDEM_RETURN_IF_ERROR(Add(&Reporter::AddValidation, local, steps, after, std::move(validation)));
  return communicators_[local]->Barrier();
}

absl::Status WorkerTrainer::Keep(int local, int64_t steps, CheckpointKeeper::Purpose purpose) {
  const Alike alike = dealt().averaging.AlikeAfter(steps);
  TANDEM_ASSIGN_OR_RETURN(ReplicaVariables variables, replicas_[local]->ReadVariables(alike));
  TANDEM_RETURN_IF_ERROR(CheckFinite(variables, steps));
  const int rank = first_rank_ + local;
  Snapshot others;
  if (spread()) {
    TANDEM_ASSIGN_OR_RETURN(others, GatherVariables(variables, alike, count() / options_.group.workers,
                                                    communicators_[local].get()));
  }
  if (keeper_ == nullptr) return absl::OkStatus();
  const auto state = [this] {
    TrainingState state = reporter_->State();
    const DatasetInfo& info = data_.info;
    state.names = DataNames{.features = info.feature_names,
                            .targets = info.target_names,
                            .classes = info.class_names,
                            .preparation = info.preparation};
    state.data = data_digest_;
    // Loads that are still to be measured are not saved.
    if (load_meter_ == nullptr || all_dealt_.size() > 1) state.loads = dealt().loads;
    MutexLock lock(&mutex_);
    state.population_statistics = population_statistics_;
    state.end = outcome_.reason == v1::STATE_REASON_PAUSE_REQUESTED ? TrainingOutcome() : outcome_;
    return state;
  };
  for (size_t i = 0; i < others.size(); ++i) {
    keeper_->Add(local_count() + static_cast<int>(i), std::move(others[i]), purpose, state);
  }
  keeper_->Add(rank, std::move(variables), purpose, state);
  return absl::OkStatus();
}

absl::Status WorkerTrainer::CheckLoads(const std::vector<double>& loads) const {
  const v1::Training& training = options_.spec.training();
  const bool alone = options_.spec.replicas().has_parameter_averaging();
  const Sampler sampler({.samples = data_.info.train_samples,
                         .batch = training.global_batch_size(),
                         .loads = loads,
                         .drop_last = training.drop_last()});
  std::set<std::pair<int64_t, int64_t>> seen;  // Samples of the batch and of the share.
  for (const int64_t step : {int64_t{0}, sampler.steps_per_epoch() - 1}) {
    for (int rank = 0; rank < static_cast<int>(loads.size()); ++rank) {
      const StepShape whole = {.samples = sampler.ShareSamples(step, rank),
                               .batch_samples = sampler.BatchSamples(step),
                               .replicas = alone ? 1 : static_cast<int>(loads.size())};
      if (whole.samples == 0 || !seen.insert({whole.batch_samples, whole.samples}).second) continue;
      for (const StepShape& part : PartsOf(whole, training.accumulation_steps())) {
        TANDEM_RETURN_IF_ERROR(BuildTrainingGraph(options_.spec, data_.info, part).status());
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WorkerTrainer::MeasureLoads(int local, int64_t step) {
  Communicator& communicator = *communicators_[local];
  const std::optional<double> speed = load_meter_->Measure(step, replicas_[local]->speed());
  if (!speed.has_value()) return absl::OkStatus();
  // All replicas of all workers compute the same loads.
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> measured,
                          GatherNumbers({*speed}, &communicator));
  if (local == 0) {
    std::vector<double> speeds;
    for (const std::vector<double>& of_rank : measured) speeds.push_back(of_rank[0]);
    v1::WorkerLoads loads = load_meter_->Loads(speeds, step + 1, dealt().train->BatchSamples(0));
    std::vector<double> values;
    for (const v1::ReplicaLoad& replica : loads.replicas()) values.push_back(replica.load());
    if (const absl::Status fits = CheckLoads(values); !fits.ok()) {
      observer_.OnNotice(absl::StrCat("cannot deal samples by the measured loads ",
                                      absl::StrJoin(values, ", "), ": ", fits.message(),
                                      "; all replicas keep equal shares"));
      values.assign(values.size(), 1.0);
      for (v1::ReplicaLoad& replica : *loads.mutable_replicas()) replica.set_load(1);
    }
    reporter_->SetLoads(values);
    Deal(std::move(values));
    observer_.OnWorkerLoads(loads);
  }
  // One replica after the other, because algorithms are timed while they compile.
  for (int turn = 0; turn <= count(); ++turn) {
    TANDEM_RETURN_IF_ERROR(communicator.Barrier());
    if (turn == first_rank_ + local) TANDEM_RETURN_IF_ERROR(replicas_[local]->Redeal(&dealt(), step + 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> WorkerTrainer::TakeSnapshot() const {
  Snapshot snapshot;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (replica == nullptr) return absl::FailedPreconditionError("there is no model before training");
    TANDEM_ASSIGN_OR_RETURN(
        snapshot.emplace_back(),
        replica->ReadVariables(dealt().averaging.AlikeAfter(reporter_->Summary().steps())));
  }
  snapshot.insert(snapshot.end(), others_.begin(), others_.end());
  return snapshot;
}

absl::Status WorkerTrainer::WriteModelOf(const Snapshot& snapshot, const std::string& path,
                                         const std::optional<v1::BestResult>& best) const {
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<NamedTensor> tensors,
      ModelTensors(snapshot, options_.spec.training().has_weight_average(), dealt().averaging.Shares()));
  v1::JobSpec spec = options_.spec;
  *spec.mutable_dataset() = submitted_dataset_;
  std::optional<TrainedOn::Table> table;
  if (data_.info.table_format.has_value()) {
    table = TrainedOn::Table{.delimiter = data_.info.table_format->delimiter()[0],
                             .columns = data_.info.table_columns,
                             .feature_positions = data_.info.feature_positions};
  }
  SettleLoads(dealt().loads, spec.mutable_replicas());
  return WriteModel(options_.env, path, spec, tensors,
                    {.sample_type = data_.info.sample_type,
                     .normalization = data_.info.normalization,
                     .class_names = data_.info.class_names,
                     .feature_names = data_.info.feature_names,
                     .target_names = data_.info.target_names,
                     .resize = ResizeOf(options_.dataset),
                     .layout = LayoutOf(FitData(options_.spec, options_.dataset)),
                     .table = std::move(table),
                     .preparation = data_.info.preparation},
                    best);
}

absl::Status WorkerTrainer::SaveModel(const std::string& path) const {
  if (options_.group.worker != 0) {
    return absl::FailedPreconditionError("the first of several workers has the model");
  }
  // Without any result, the last model is the only model.
  if (options_.spec.training().best_model().export_best() && !options_.best_path.empty() &&
      reporter_ != nullptr && reporter_->Summary().has_best()) {
    return CopyFileAtomically(options_.env, options_.best_path, path);
  }
  TANDEM_ASSIGN_OR_RETURN(const Snapshot snapshot, TakeSnapshot());
  return WriteModelOf(snapshot, path);
}

}  // namespace tandem
