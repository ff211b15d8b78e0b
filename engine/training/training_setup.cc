#include "engine/training/training_setup.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/random_access_env.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/augment/augmenter.h"
#include "engine/data/sampler.h"
#include "engine/data/statistics.h"
#include "engine/losses/loss.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/fit_data.h"
#include "engine/training/initial_weights.h"
#include "engine/training/judge.h"
#include "engine/training/model_file.h"
#include "engine/training/notices.h"
#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"
#include "engine/training/step_graph.h"
#include "engine/training/targets.h"
#include "engine/training/trained_model.h"

namespace tandem {

TrainingSetup::TrainingSetup(Trainer::Options options, v1::DatasetSpec submitted)
    : options_(std::move(options)), submitted_dataset_(std::move(submitted)), observer_(options_.observer) {}

std::vector<std::string> TrainingSetup::device_names() const {
  std::vector<std::string> names;
  for (const v1::Device& device : options_.devices) names.push_back(device.name());
  return names;
}

absl::Status TrainingSetup::Open() {
  TANDEM_RETURN_IF_ERROR(OpenCheckpoint());
  TANDEM_RETURN_IF_ERROR(OpenData());
  TANDEM_RETURN_IF_ERROR(CompareData());
  TANDEM_RETURN_IF_ERROR(CheckData());
  TANDEM_RETURN_IF_ERROR(OpenWeights());
  return Begin();
}

absl::Status TrainingSetup::OpenCheckpoint() {
  absl::optional<Resumption>& resumed = beginning_->resumed;
  TANDEM_ASSIGN_OR_RETURN(resumed,
                          tandem::OpenCheckpoint(options_.env, options_.checkpoint_folder, spec(), ranks(),
                                                 /*sets_aside=*/options_.group.worker == 0));
  if (!resumed.has_value()) return absl::OkStatus();
  state_ = resumed->state;
  checkpoint_ = resumed->checkpoint;
  for (const std::string& notice : resumed->notices) Notify(notice);
  if (spec().training().best_model().keep_weights() && !options_.best_path.empty()) MatchBestModel();
  return absl::OkStatus();
}

// The best model may be of a step after the checkpoint, because it was written before the next checkpoint.
// Its result then counts, so that the kept model is the model of the best result.
void TrainingSetup::MatchBestModel() {
  if (!state_.summary.has_best()) return;
  const auto file = options_.env->OpenRandomAccess(options_.best_path, RandomAccessEnv::Open::kReadOnly);
  const absl::StatusOr<v1::BestResult> best = file.ok() ? ReadBestResult(**file) : file.status();
  if (best.ok()) {
    *state_.summary.mutable_best() = *best;
    return;
  }
  Notify(absl::StrCat("The model with the best result so far, of step ", state_.summary.best().step(),
                      absl::IsNotFound(best.status())
                          ? ", is not there"
                          : absl::StrCat(", cannot be used: ", best.status().message()),
                      ": the best of the results that follow is kept."));
  state_.summary.clear_best();
}

absl::StatusOr<std::optional<DataNames>> TrainingSetup::NamesOfModel() const {
  if (!checkpoint_.has_value() && !spec().has_initial_weights()) return std::optional<DataNames>();
  absl::StatusOr<DataNames> names = checkpoint_.has_value()
                                        ? NamesInModel(state_.model)
                                        : NamesOfInitialWeights(spec(), options_.initial_weights_path);
  if (!names.ok()) return DataError(names.status());
  return std::optional<DataNames>(*std::move(names));
}

absl::Status TrainingSetup::OpenData() {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<DataNames> names, NamesOfModel());
  absl::StatusOr<OpenedDataset> opened =
      OpenDataset(FitData(spec(), options_.dataset), names.has_value() ? &*names : nullptr);
  if (!opened.ok()) return DataError(opened.status());
  data_ = *std::move(opened);
  for (const std::string& notice : data_.info.notices) Notify(notice);
  Notify(LayoutNotice(spec().model()));
  Notify(OutputNotice(spec().model(), spec().training().loss()));
  Notify(BatchNotice(spec().training().global_batch_size(), data_.info.train_samples));
  return NotifyOfClasses();
}

// Reads the targets only if the job takes a part of the samples.
absl::Status TrainingSetup::NotifyOfClasses() {
  const v1::DatasetSpec& dataset = options_.dataset;
  const bool parts_validation = dataset.has_validation_split() || dataset.validation_limit() > 0;
  if (dataset.train_limit() == 0 && !parts_validation) return absl::OkStatus();
  const absl::StatusOr<std::vector<int64_t>> train = CountClasses(*data_.train, data_.info);
  if (!train.ok()) return DataError(train.status());
  std::vector<int64_t> validation;
  if (data_.validation != nullptr) {
    absl::StatusOr<std::vector<int64_t>> counts = CountClasses(*data_.validation, data_.info);
    if (!counts.ok()) return DataError(counts.status());
    validation = *std::move(counts);
  }
  Notify(UntrainedClassesNotice(dataset, data_.info, *train, validation));
  if (parts_validation) Notify(UnvalidatedClassesNotice(data_.info, *train, validation));
  return absl::OkStatus();
}

// Compares the data with those of the checkpoint.
absl::Status TrainingSetup::CompareData() {
  const bool keeps = checkpoint_.has_value() || !spec().checkpoints().off();
  if (options_.checkpoint_folder.empty() || !keeps) return absl::OkStatus();
  absl::StatusOr<DataDigest> digest = DigestData(options_.dataset);
  if (!digest.ok()) return DataError(digest.status());
  data_digest_ = *std::move(digest);
  if (!data_.info.samples_sha256.empty()) data_digest_[kDataSamples] = data_.info.samples_sha256;
  const std::string notice = ChangedDataNotice(state_.step, ChangedFields(state_.data, data_digest_));
  Notify(notice);
  if (!notice.empty()) Notify(NormalizationNotice(options_.dataset));
  return absl::OkStatus();
}

// Fits the job to its data and checks them. Create checked the job without its data.
absl::Status TrainingSetup::CheckData() {
  v1::Training& training = *options_.spec.mutable_training();
  const absl::Status relabelled = RelabelClasses(data_.info.class_labels, training.mutable_loss());
  if (!relabelled.ok()) return DataError(UnderField("training.loss", relabelled));
  // The settings count labels from here on.
  data_.info.class_labels.clear();
  if (training.loss().softmax_cross_entropy().balance_classes()) {
    const absl::StatusOr<std::vector<int64_t>> counts = CountClasses(*data_.train, data_.info);
    if (!counts.ok()) return DataError(counts.status());
    BalanceClasses(*counts, training.mutable_loss());
  }
  const absl::StatusOr<JobPlan> plan = PlanJob(spec(), data_.info);
  if (!plan.ok()) return DataError(plan.status());
  for (const auto& [name, split] :
       {std::pair("training", data_.train.get()), std::pair("validation", data_.validation.get())}) {
    if (split == nullptr) continue;
    const absl::StatusOr<std::string> fault = TargetRangeFault(training.loss(), *split, data_.info);
    if (!fault.ok()) return DataError(fault.status());
    if (fault->empty()) continue;
    return absl::DataLossError(
        absl::StrCat("cannot train on the ", name, " samples: their targets ", *fault));
  }
  if (training.balance_samples()) {
    absl::StatusOr<ClassSamples> classes =
        SamplesOfClasses(*data_.train, data_.info, IgnoreIndexOf(training.loss()));
    if (!classes.ok()) return DataError(classes.status());
    classes_ = std::make_shared<const ClassSamples>(*std::move(classes));
    if (classes_->empty()) {
      return absl::DataLossError(
          "cannot balance the training samples: the loss ignores the targets of all of them");
    }
  }
  planned_memory_ = plan->memory;
  resident_ = plan->resident_bytes > 0;
  unchanged_samples_ = data_.train.get();
  data_.train =
      Augment(std::move(data_.train), options_.dataset.augmentation(), data_.info, training.seed(), classes_);
  return absl::OkStatus();
}

absl::Status TrainingSetup::OpenWeights() {
  // A checkpoint replaces the initial weights.
  if (!spec().has_initial_weights() || checkpoint_.has_value()) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(CheckModelSha256(options_.initial_weights_path, options_.initial_weights_sha256));
  absl::StatusOr<std::map<std::string, Tensor>> weights =
      ReadInitialWeights(spec(), options_.initial_weights_path);
  if (!weights.ok()) return DataError(weights.status());
  beginning_->by_weights = *std::move(weights);
  Notify(WeightsNotice(spec().initial_weights(), beginning_->by_weights.size()));
  return NotifyOfNormalization();
}

absl::Status TrainingSetup::NotifyOfNormalization() {
  const absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(options_.initial_weights_path);
  if (!header.ok()) return DataError(header.status());
  const std::optional<v1::Normalization> of_model = NormalizationIn(header->metadata);
  if (!of_model.has_value()) {
    Notify(NormalizationNotice(options_.dataset));
    return absl::OkStatus();
  }
  TANDEM_ASSIGN_OR_RETURN(const std::optional<DataNames> names, NamesOfModel());
  const bool takes_samples = names.has_value() && names->matches_inputs;
  if (takes_samples && data_.info.sample_type != SampleType::kTokens && of_model->mean_size() > 0 &&
      of_model->standard_deviation_size() > 0) {
    Notify(NormalizationNotice(*of_model, data_.info.normalization));
  }
  return absl::OkStatus();
}

absl::Status TrainingSetup::Begin() {
  const v1::Training& training = spec().training();
  loads_ = LoadsOf(spec().replicas());
  if (spec().replicas().auto_worker_load()) {
    const bool are_known = state_.loads.size() == loads_.size() && CheckLoads(state_.loads).ok();
    if (are_known) loads_ = state_.loads;
    measures_loads_ = !are_known && ranks() > 1;
  }
  length_ = Deal(loads_)->length;
  if (state_.step > length_.steps) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot continue from the checkpoint of step ", state_.step, " in ", options_.checkpoint_folder,
        ": the job ends with step ", length_.steps, "; raise ",
        training.steps() > 0 ? "training.steps" : "training.epochs", ", or start in another folder"));
  }
  if (checkpoint_.has_value()) {
    const std::string notice =
        ResultsNotice(state_, training, validates(), /*other_data=*/state_.data != data_digest_);
    Notify(notice);
    if (!notice.empty()) ForgetResults(&state_);
    ForgetOtherAims(training, &state_);
  }
  if (!StillEnds(state_, training, length_)) state_.end = {};
  Notify(EpochsNotice(state_, length_));
  if (state_.steps_per_epoch != 0 && state_.steps_per_epoch != length_.steps_per_epoch) {
    state_.earlier_epochs.push_back({state_.step, state_.steps_per_epoch, state_.epoch_shift});
  }
  return absl::OkStatus();
}

bool TrainingSetup::had_ended() const {
  return state_.end.reason != v1::STATE_REASON_UNSPECIFIED || state_.step >= length_.steps;
}

std::shared_ptr<const DealtSamples> TrainingSetup::Deal(const std::vector<double>& loads) const {
  MutexLock lock(&mutex_);
  std::shared_ptr<const DealtSamples>& dealt = dealt_[loads];
  if (dealt == nullptr) {
    dealt = std::make_shared<const DealtSamples>(spec(), data_.info, loads, state_, classes_);
  }
  return dealt;
}

absl::Status TrainingSetup::CheckLoads(const std::vector<double>& loads) const {
  const v1::Training& training = spec().training();
  const bool alone = spec().replicas().has_parameter_averaging();
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
        TANDEM_RETURN_IF_ERROR(BuildTrainingGraph(spec(), data_.info, part).status());
      }
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<LearningRate> TrainingSetup::MakeLearningRate() const {
  const v1::Training& training = spec().training();
  auto rate = std::make_unique<LearningRate>(
      LearningRate::Options{.schedule = training.schedule(),
                            .learning_rate = LearningRateOf(training.optimizer()),
                            .steps_per_epoch = length_.steps_per_epoch,
                            .steps = length_.steps,
                            .epoch_shift = length_.epoch_shift,
                            .earlier_epochs = state_.earlier_epochs,
                            .replicas = ranks()});
  if (state_.plateau.has_value()) rate->Restore(*state_.plateau);
  return rate;
}

}  // namespace tandem
