#include "engine/training/coordinator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/file_pieces.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/training/fit_data.h"
#include "engine/training/load_meter.h"
#include "engine/training/notices.h"
#include "engine/training/replica_spec.h"

namespace tandem {

Coordinator::Coordinator(const TrainingSetup* setup)
    : setup_(*setup), watch_(setup->spec(), setup->options().clock) {}

void Coordinator::Open() {
  const Trainer::Options& options = setup_.options();
  learning_rate_ = setup_.MakeLearningRate();
  first_dealt_ = setup_.Deal(setup_.loads());
  reporter_ = std::make_unique<Reporter>(setup_.spec(), setup_.length(), setup_.device_names(),
                                         setup_.validates(), learning_rate_.get(), &first_dealt_->averaging,
                                         options.clock, &setup_.observer());
  reporter_->SetClassNames(setup_.data().info.class_names);
  if (setup_.data().info.preparation.has_value()) {
    reporter_->SetTargetDeviation(setup_.data().info.preparation->target_deviation());
  }
  if (setup_.checkpoint().has_value()) reporter_->Restore(setup_.state());
  Deal(first_dealt_);
  if (options.checkpoint_folder.empty() && options.best_path.empty()) return;
  if (!options.checkpoint_folder.empty()) {
    RemoveUnfinishedCheckpoints(options.env, options.checkpoint_folder);
  }
  keeper_ = std::make_unique<CheckpointKeeper>(CheckpointKeeper::Options{
      .env = options.env,
      .checkpoint_folder = options.checkpoint_folder,
      .checkpoints = setup_.spec().checkpoints(),
      .best_path = options.best_path,
      .save_model = [this](const std::string& path, const Snapshot& snapshot,
                           const v1::BestResult& best) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(const std::vector<NamedTensor> model, ModelOf(snapshot));
        return WriteModelWith(model, path, best);
      },
      .observer = &setup_.observer(),
      .clock = options.clock,
      .last_step = setup_.state().step});
}

void Coordinator::Start(int64_t bytes, const std::string& no_memory) {
  const TrainingState& begin = setup_.state();
  reporter_->Start();
  if (setup_.checkpoint().has_value()) setup_.observer().OnResumed(*setup_.checkpoint());
  Notify(MemoryNotice(bytes, setup_.planned_bytes()));
  Notify(ScalingNotice(setup_.spec().training().schedule(), setup_.ranks(), learning_rate_->Rate(0)));
  Notify(DataNotice(setup_.spec(), setup_.data().info, setup_.plans_resident(), no_memory));
  watch_.Start(begin.summary.training_seconds() + begin.summary.validation_seconds());
  outcome_ = begin.end;
  if (begin.step >= setup_.length().steps) outcome_.reason = v1::STATE_REASON_COMPLETED;
}

void Coordinator::TookStatistics() {
  reporter_->LeaveOut();
  population_statistics_ = true;
}

void Coordinator::TellParameters(const v1::ParameterReport& report) {
  setup_.observer().OnParameters(report);
  reporter_->LeaveOut();
}

std::vector<double> Coordinator::MeasureLoads(const std::vector<double>& speeds, int64_t step) {
  const LoadMeter meter(setup_.device_names(), setup_.state().step);
  v1::WorkerLoads measured = meter.Loads(speeds, step, first_dealt_->train->BatchSamples(0));
  std::vector<double> loads;
  for (const v1::ReplicaLoad& replica : measured.replicas()) loads.push_back(replica.load());
  if (const absl::Status fits = setup_.CheckLoads(loads); !fits.ok()) {
    Notify(absl::StrCat("cannot deal samples by the measured loads ", absl::StrJoin(loads, ", "), ": ",
                        fits.message(), "; all replicas keep equal shares"));
    loads.assign(loads.size(), 1.0);
    for (v1::ReplicaLoad& replica : *measured.mutable_replicas()) replica.set_load(1);
  }
  has_measured_loads_ = true;
  setup_.observer().OnWorkerLoads(measured);
  return loads;
}

void Coordinator::Deal(std::shared_ptr<const DealtSamples> dealt) {
  reporter_->SetLoads(dealt->loads);
  MutexLock lock(&mutex_);
  dealt_ = std::move(dealt);
}

std::shared_ptr<const DealtSamples> Coordinator::dealt() const {
  MutexLock lock(&mutex_);
  return dealt_;
}

TrainingOutcome Coordinator::OutcomeOf(const AfterStep& after) const {
  const v1::Training& training = setup_.spec().training();
  if (after.end == v1::STATE_REASON_COMPLETED) {
    return {after.end, training.steps() > 0 ? "All steps were trained." : "All epochs were trained."};
  }
  TrainingOutcome early = reporter_->EarlyEnd();
  if (early.reason != v1::STATE_REASON_UNSPECIFIED) return early;
  if (after.end == v1::STATE_REASON_TIME_LIMIT) {
    return {after.end, absl::StrCat("Training has taken the ", training.early_stopping().max_seconds(),
                                    " s that it was given.")};
  }
  return {after.end, ""};
}

bool Coordinator::KeepsBest() const {
  return reporter_->Improved() && setup_.spec().training().best_model().keep_weights() &&
         !setup_.options().best_path.empty();
}

Verdict Coordinator::Conclude(const AfterStep& after) {
  const bool had_ended = outcome_.reason != v1::STATE_REASON_UNSPECIFIED;
  outcome_ = OutcomeOf(after);
  Verdict verdict = {.end = outcome_.reason, .best = KeepsBest()};
  if (verdict.ends() && !verdict.pauses() && !after.ends_epoch && !had_ended) reporter_->CloseEpoch();
  const v1::Checkpointing& checkpoints = setup_.spec().checkpoints();
  const bool is_wanted =
      after.checkpoint || verdict.ends() || (reporter_->IsBest() && checkpoints.keep_best());
  verdict.checkpoint = is_wanted && !checkpoints.off() && !setup_.options().checkpoint_folder.empty();
  verdict.plateau = learning_rate_->state();
  return verdict;
}

Verdict Coordinator::ConcludeFinished() const {
  return {.end = outcome_.reason, .best = KeepsBest(), .plateau = learning_rate_->state()};
}

absl::StatusOr<TrainingState> Coordinator::State() const {
  TrainingState state = reporter_->State();
  TANDEM_ASSIGN_OR_RETURN(state.model, ModelMetadata(ModelJob(), ModelData()));
  state.data = setup_.data_digest();
  // Loads that are still to be measured are not saved.
  if (!setup_.measures_loads() || has_measured_loads_) state.loads = dealt()->loads;
  state.population_statistics = population_statistics_;
  state.end = outcome_.reason == v1::STATE_REASON_PAUSE_REQUESTED ? TrainingOutcome() : outcome_;
  return state;
}

absl::Status Coordinator::Keep(Snapshot snapshot, const Verdict& verdict, int64_t steps) {
  for (const ReplicaVariables& variables : snapshot) TANDEM_RETURN_IF_ERROR(CheckFinite(variables, steps));
  TANDEM_ASSIGN_OR_RETURN(TrainingState state, State());
  keeper_->Add(std::move(snapshot), {.checkpoint = verdict.checkpoint, .best = verdict.best},
               std::move(state));
  return absl::OkStatus();
}

absl::Status Coordinator::SetModel(const Snapshot& snapshot, int64_t steps) {
  for (const ReplicaVariables& variables : snapshot) TANDEM_RETURN_IF_ERROR(CheckFinite(variables, steps));
  TANDEM_ASSIGN_OR_RETURN(model_, ModelOf(snapshot));
  return absl::OkStatus();
}

void Coordinator::Flush() {
  if (keeper_ != nullptr) keeper_->Flush();
}

absl::Status Coordinator::WithCheckpoint(const absl::Status& status) const {
  if (!absl::IsOutOfRange(status) || keeper_ == nullptr || setup_.spec().checkpoints().off()) return status;
  const int64_t step = keeper_->last_step();
  return absl::OutOfRangeError(absl::StrCat(
      status.message(), step == 0 ? "; there is no checkpoint from before"
                                  : absl::StrCat("; the last good checkpoint is that of step ", step)));
}

v1::TrainingSummary Coordinator::Summary() const {
  v1::TrainingSummary summary;
  if (reporter_ != nullptr) summary = reporter_->Summary();
  if (keeper_ != nullptr) summary.set_checkpoint_step(keeper_->last_step());
  return summary;
}

absl::StatusOr<std::vector<NamedTensor>> Coordinator::ModelOf(const Snapshot& snapshot) const {
  return ModelTensors(snapshot, setup_.spec().training().has_weight_average(), dealt()->averaging.Shares());
}

v1::JobSpec Coordinator::ModelJob() const {
  v1::JobSpec spec = setup_.spec();
  *spec.mutable_dataset() = setup_.submitted_dataset();
  SettleLoads(dealt()->loads, spec.mutable_replicas());
  return spec;
}

TrainedOn Coordinator::ModelData() const {
  const v1::DatasetSpec& dataset = setup_.options().dataset;
  const DatasetInfo& info = setup_.data().info;
  std::optional<TrainedOn::Table> table;
  if (info.table_format.has_value()) {
    table = TrainedOn::Table{.delimiter = info.table_format->delimiter()[0],
                             .columns = info.table_columns,
                             .feature_positions = info.feature_positions};
  }
  return {.sample_type = info.sample_type,
          .normalization = info.normalization,
          .class_names = info.class_names,
          .feature_names = info.feature_names,
          .target_names = info.target_names,
          .resize = ResizeOf(dataset),
          .layout = LayoutOf(FitData(setup_.spec(), dataset)),
          .table = std::move(table),
          .preparation = info.preparation};
}

absl::Status Coordinator::WriteModelWith(const std::vector<NamedTensor>& tensors, const std::string& path,
                                         const std::optional<v1::BestResult>& best) const {
  return WriteModel(setup_.options().env, path, ModelJob(), tensors, ModelData(), best);
}

absl::Status Coordinator::SaveModel(const std::string& path) const {
  const Trainer::Options& options = setup_.options();
  // Without any result, the last model is the only model.
  if (setup_.spec().training().best_model().export_best() && !options.best_path.empty() &&
      reporter_ != nullptr && reporter_->Summary().has_best()) {
    return CopyFileAtomically(options.env, options.best_path, path);
  }
  if (!model_.has_value()) return absl::FailedPreconditionError("there is no model before training");
  return WriteModelWith(*model_, path, std::nullopt);
}

}  // namespace tandem
