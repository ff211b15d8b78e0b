#include "engine/training/replica.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/initializers/initializer.h"
#include "engine/training/replica_average.h"
#include "engine/training/targets.h"

namespace tandem {
namespace {

// For validation, which may come at any time.
constexpr int64_t kAnyNumberOfSteps = std::numeric_limits<int64_t>::max();

// Returns the first value of a parameter without initial weights.
Tensor InitialValueOf(const Parameter& parameter, uint64_t seed) {
  Tensor value = Initialize(parameter.initializer, parameter.shape, parameter.fans, seed, parameter.name);
  if (parameter.zero_row == Parameter::kNoRow) return value;
  const int64_t bytes = value.bytes() / parameter.shape[0];
  std::memset(static_cast<std::byte*>(value.raw_data()) + parameter.zero_row * bytes, 0, bytes);
  return value;
}

}  // namespace

Replica::Replica(const ReplicaContext& context, std::unique_ptr<Device> device, Communicator* communicator)
    : context_(context),
      rank_(communicator->rank()),
      replicas_(communicator->world_size()),
      device_(std::move(device)),
      device_communicator_(device_->WrapCommunicator(communicator)),
      communicator_(device_communicator_ == nullptr ? communicator : device_communicator_.get(),
                    device_.get()),
      resident_(context.resident) {}

StepShape Replica::ShapeOf(int64_t step_of_epoch, int rank) const {
  const Sampler& sampler = *context_.dealt->train;
  const bool alone = context_.dealt->averaging.steps_alone();
  return {.samples = sampler.ShareSamples(step_of_epoch, rank),
          .first_sample = sampler.ShareFirst(step_of_epoch, rank),
          .batch_samples = sampler.BatchSamples(step_of_epoch),
          .replicas = alone ? 1 : replicas_,
          .rank = alone ? 0 : rank,
          .dtype = device_->dtype(),
          .resident = resident_};
}

absl::Status Replica::LayOutAsFirst() {
  const StepShape first = ShapeOf(0, 0);
  if (first.samples == ShapeOf(0, rank_).samples) return absl::OkStatus();
  const StepShape part = PartsOf(first, context_.spec->training().accumulation_steps())[0];
  TANDEM_ASSIGN_OR_RETURN(const StepGraph step,
                          BuildTrainingGraph(*context_.spec, context_.data->info, part));
  return device_->Compile(step.graph, variables_.get()).status();
}

absl::Status Replica::CompileTraining(int64_t step_of_epoch) {
  const StepShape whole = ShapeOf(step_of_epoch, rank_);
  std::vector<Part>& parts = parts_[whole.batch_samples];
  if (!parts.empty()) return absl::OkStatus();
  for (const StepShape& shape : PartsOf(whole, context_.spec->training().accumulation_steps())) {
    if (shape.is_early && !parts.empty() && parts.back().samples == shape.samples) {
      parts.push_back(parts.back());
      continue;
    }
    TANDEM_ASSIGN_OR_RETURN(StepGraph step, BuildTrainingGraph(*context_.spec, context_.data->info, shape));
    TANDEM_ASSIGN_OR_RETURN(training_.emplace_back(), device_->Compile(step.graph, variables_.get()));
    parts.push_back({.samples = shape.samples, .executable = training_.back().get()});
    parameters_ = std::move(step.parameters);
    statistics_ = std::move(step.statistics);
  }
  return population_ == nullptr ? absl::OkStatus() : population_->Compile(whole);
}

absl::Status Replica::Open(const Replica* like) {
  const absl::Status opened = OpenAsPlaced(like);
  const bool may_stay = context_.spec->gpu().data() != v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY;
  if (!resident_ || !may_stay || !absl::IsResourceExhausted(opened)) return opened;
  why_not_resident_ = std::string(opened.message());
  resident_ = false;
  DropExecutables();
  train_picks_.reset();
  validation_picks_.reset();
  uploaded_.clear();
  return OpenAsPlaced(like);
}

absl::Status Replica::OpenAsPlaced(const Replica* like) {
  if (resident_) {
    train_picks_ = MakePicks(*context_.spec, context_.data->info, DataSplit::kTraining);
    if (ValidatesResident(*context_.spec)) {
      validation_picks_ = MakePicks(*context_.spec, context_.data->info, DataSplit::kValidation);
    }
  }
  variables_ = device_->CreateVariables(like == nullptr ? nullptr : like->variables_.get());
  if (WantsPopulationStatistics(*context_.spec)) {
    population_ = std::make_unique<PopulationStatistics>(context_.spec, &context_.data->info, device_.get(),
                                                         variables_.get());
  }
  if (like == nullptr) TANDEM_RETURN_IF_ERROR(LayOutAsFirst());
  return TakeShares(context_.first_step);
}

absl::Status Replica::Redeal(const DealtSamples* dealt, int64_t next_step) {
  context_.dealt = dealt;
  earlier_wait_seconds_ += train_loader_->wait_seconds();
  DropExecutables();
  return TakeShares(next_step);
}

void Replica::DropExecutables() {
  train_loader_.reset();
  validation_loader_.reset();
  parts_.clear();
  training_.clear();
  validation_.clear();
  if (population_ != nullptr) population_->Drop();
}

absl::Status Replica::TakeShares(int64_t first_step) {
  Sampler& sampler = *context_.dealt->train;
  TANDEM_RETURN_IF_ERROR(CompileTraining(0));
  TANDEM_RETURN_IF_ERROR(CompileTraining(sampler.steps_per_epoch() - 1));
  // Loaders need steps only to find their epochs.
  const int64_t shift = context_.dealt->length.epoch_shift;
  train_loader_ = std::make_unique<Loader>(train_data(), &sampler, rank_, first_step + shift,
                                           context_.steps + shift, LoaderDepth(*train_data(), resident_));
  Sampler* const validation = context_.dealt->validation.get();
  if (validation == nullptr) return UploadSamples();

  for (const int64_t step : {int64_t{0}, validation->steps_per_epoch() - 1}) {
    const int64_t samples = validation->ShareSamples(step, rank_);
    if (samples == 0 || validation_.count(samples) != 0) continue;
    TANDEM_ASSIGN_OR_RETURN(const StepGraph graph,
                            BuildValidationGraph(*context_.spec, context_.data->info, samples,
                                                 device_->dtype(), validation_picks_ != nullptr));
    TANDEM_ASSIGN_OR_RETURN(validation_[samples], device_->Compile(graph.graph, variables_.get()));
  }
  validation_loader_ =
      std::make_unique<Loader>(validation_data(), validation, rank_, /*first_step=*/0, kAnyNumberOfSteps,
                               LoaderDepth(*validation_data(), validation_picks_ != nullptr));
  return UploadSamples();
}

int Replica::LoaderDepth(const Dataset& data, bool picks) const {
  // Drawing indices is cheaper than passing them between threads.
  return picks && data.target_bytes() == 0 ? 0 : context_.spec->replicas().prefetch();
}

absl::Status Replica::UploadSamples() {
  const auto upload = [this](DataSplit split, const Dataset* samples) {
    if (!HasData(*variables_, split) || !uploaded_.insert(split).second) return absl::OkStatus();
    return UploadData(*samples, context_.data->info, split, variables_.get());
  };
  TANDEM_RETURN_IF_ERROR(upload(DataSplit::kTraining, context_.unchanged_samples));
  return upload(DataSplit::kValidation, context_.data->validation.get());
}

std::vector<const void*> Replica::InputsOf(const Dataset& data, const void* samples, const void* targets) {
  // Without random numbers, graphs over samples on the device have no second input.
  if (data.target_bytes() == 0) return {samples};
  return {samples, targets};
}

int64_t Replica::bytes() const {
  int64_t bytes = variables_->bytes() + train_loader_->bytes();
  if (population_ != nullptr) bytes += population_->bytes();
  if (validation_loader_ != nullptr) bytes += validation_loader_->bytes();
  for (const auto& executable : training_) bytes += executable->bytes();
  for (const auto& [samples, executable] : validation_) bytes += executable->bytes();
  return bytes;
}

std::string Replica::notice() const {
  for (const auto& executable : training_) {
    if (std::string notice = executable->notice(); !notice.empty()) return notice;
  }
  return "";
}

absl::Status Replica::InitializeParameters(const std::map<std::string, Tensor>& weights) {
  const auto given = [&](const std::string& name) {
    const auto found = weights.find(name);
    return found == weights.end() ? nullptr : &found->second;
  };
  for (const Parameter& parameter : parameters_) {
    if (rank_ == 0) {
      const Tensor* const weight = given(parameter.name);
      TANDEM_RETURN_IF_ERROR(variables_->Write(
          parameter.name,
          weight != nullptr ? *weight : InitialValueOf(parameter, context_.spec->training().seed())));
    }
    TANDEM_ASSIGN_OR_RETURN(const BufferView view, variables_->View(parameter.name));
    TANDEM_RETURN_IF_ERROR(communicator_.Broadcast(view, 0));
  }
  for (const Statistic& statistic : statistics_) {
    if (const Tensor* const weight = given(statistic.name); weight != nullptr) {
      TANDEM_RETURN_IF_ERROR(variables_->Write(statistic.name, *weight));
      continue;
    }
    Tensor value(DType::kFloat64, statistic.shape);
    for (double& number : value.data<double>()) number = statistic.initial;
    TANDEM_RETURN_IF_ERROR(variables_->Write(statistic.name, value));
  }
  const auto begin_average = [this](const std::string& name) -> absl::Status {
    if (!HasAverage(name)) return absl::OkStatus();
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, variables_->Read(name));
    return variables_->Write(AverageName(name), value);
  };
  for (const Parameter& parameter : parameters_) TANDEM_RETURN_IF_ERROR(begin_average(parameter.name));
  for (const Statistic& statistic : statistics_) TANDEM_RETURN_IF_ERROR(begin_average(statistic.name));
  return InitializeLossScale();
}

absl::Status Replica::InitializeLossScale() {
  if (!ScalesLoss()) return absl::OkStatus();
  double scale = context_.spec->training().loss_scaling().initial_scale();
  if (device_->dtype() == DType::kFloat32) {
    using Limits = std::numeric_limits<float>;
    scale = std::clamp<double>(scale, Limits::min(), Limits::max());
  }
  return variables_->Write(kLossScale, Tensor::Of<double>({}, {scale}));
}

absl::StatusOr<double> Replica::ParametersDigest() const {
  // FNV-1a over whole words. A double keeps the upper bits exactly.
  uint64_t digest = 0xcbf29ce484222325;
  for (const Parameter& parameter : parameters_) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, variables_->Read(parameter.name));
    const auto* bytes = static_cast<const char*>(value.raw_data());
    for (int64_t at = 0; at < value.bytes(); at += 4) {
      uint32_t word = 0;
      std::memcpy(&word, bytes + at, std::min<int64_t>(sizeof(word), value.bytes() - at));
      digest = (digest ^ word) * 0x100000001b3;
    }
  }
  return static_cast<double>(digest >> 12);
}

void Replica::SetMeasured(bool is_measured) {
  is_measured_ = is_measured;
  communicator_.SetWaits(is_measured);
}

absl::Status Replica::TrainSteps(int64_t first, int64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  const double waited = train_loader_->wait_seconds() + communicator_.seconds();
  const int64_t end = first + count;
  for (int64_t step = first; step < end;) {
    const int64_t alike = StepsAlike(step, end - step);
    TANDEM_RETURN_IF_ERROR(alike == 1 ? RunStep(step) : RunStepsAlike(step, alike));
    step += alike;
  }
  if (is_measured_) TANDEM_RETURN_IF_ERROR(device_->Wait());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  speed_.seconds += taken.count() - (train_loader_->wait_seconds() + communicator_.seconds() - waited);
  return context_.dealt->averaging.AveragesAfter(end - 1) ? Average(end - 1) : absl::OkStatus();
}

int64_t Replica::StepsAlike(int64_t step, int64_t count) const {
  const int64_t batch = BatchSamplesOf(step);
  const std::vector<Part>& parts = parts_.at(batch);
  if (!resident_ || parts.size() != 1 || parts[0].samples == 0) return 1;
  int64_t alike = 1;
  while (alike < count && BatchSamplesOf(step + alike) == batch) ++alike;
  return alike;
}

absl::Status Replica::RunStep(int64_t step) {
  TANDEM_ASSIGN_OR_RETURN(const Batch batch, train_loader_->Next());
  const std::vector<Part>& parts = parts_.at(BatchSamplesOf(step));
  const double learning_rate = context_.learning_rate->Rate(step);
  samples_ += batch.samples;
  speed_.samples += batch.samples;
  if (batch.samples == 0 && context_.dealt->averaging.steps_alone()) return absl::OkStatus();
  if (batch.samples == 0) return parts[0].executable->Run({&learning_rate, &step}, &communicator_);
  const auto* input = static_cast<const std::byte*>(batch.input);
  const auto* target = static_cast<const std::byte*>(batch.target);
  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t step_of_part = StepOfPart(step, i, parts.size(), first);
    std::vector<const void*> inputs = InputsOf(*train_data(), input, target);
    inputs.insert(inputs.end(), {&learning_rate, &step_of_part});
    TANDEM_RETURN_IF_ERROR(parts[i].executable->Run(inputs, &communicator_));
    input += parts[i].samples * train_data()->sample_bytes();
    target += parts[i].samples * train_data()->target_bytes();
    first += parts[i].samples;
  }
  return absl::OkStatus();
}

absl::Status Replica::RunStepsAlike(int64_t step, int64_t count) {
  double learning_rate = 0;
  int64_t number = 0;
  std::vector<const void*> inputs;
  const auto inputs_of = [&](int64_t run) {
    // Indices are made in memory, so this cannot fail.
    const Batch batch = train_loader_->Next().value();
    samples_ += batch.samples;
    speed_.samples += batch.samples;
    number = step + run;
    learning_rate = context_.learning_rate->Rate(number);
    inputs = InputsOf(*train_data(), batch.input, batch.target);
    inputs.insert(inputs.end(), {&learning_rate, &number});
    return absl::MakeConstSpan(inputs);
  };
  Executable& executable = *parts_.at(BatchSamplesOf(step))[0].executable;
  return executable.RunSeveral(count, inputs_of, &communicator_);
}

absl::Status Replica::Average(int64_t step) {
  const std::vector<double> shares = context_.dealt->averaging.SharesAfter(step);
  // Sorted, so that all replicas have the same order, whichever executable declared the variables first.
  std::set<std::string> names;
  for (const Parameter& parameter : parameters_) {
    if (!parameter.frozen) names.insert(parameter.name);
  }
  for (const Statistic& statistic : statistics_) {
    if (!statistic.frozen) names.insert(statistic.name);
    if (HasAverage(statistic.name)) names.insert(AverageName(statistic.name));
  }
  for (const std::string& name : variables_->names()) {
    TANDEM_ASSIGN_OR_RETURN(const VariableKind kind, variables_->kind(name));
    if (kind != VariableKind::kOptimizerState) continue;
    if (context_.dealt->averaging.averages_state() || absl::StartsWith(name, kAveragePrefix))
      names.insert(name);
  }
  for (const std::string& name : names) {
    TANDEM_RETURN_IF_ERROR(AverageVariable(name, shares, variables_.get(), &communicator_));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Replica::TakeMeter(const char* name) {
  TANDEM_ASSIGN_OR_RETURN(const Tensor meter, variables_->Read(name));
  TANDEM_RETURN_IF_ERROR(variables_->Clear(name));
  const absl::Span<const double> sums = meter.data<double>();
  return std::vector<double>(sums.begin(), sums.end());
}

absl::StatusOr<Measurement> Replica::TakeTraining() {
  Measurement measurement;
  TANDEM_ASSIGN_OR_RETURN(measurement.sums, TakeMeter(kTrainingMeter));
  // If a reduction was aborted, the device may have ended early, and the sums are wrong.
  TANDEM_RETURN_IF_ERROR(communicator_.status());
  measurement.samples = std::exchange(samples_, 0);
  const double waited = earlier_wait_seconds_ + train_loader_->wait_seconds();
  measurement.data_wait_seconds = waited - std::exchange(wait_seconds_, waited);
  const double reduced = communicator_.seconds();
  measurement.reduce_seconds = reduced - std::exchange(reduce_seconds_, reduced);
  if (ScalesLoss()) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor scale, variables_->Read(kLossScale));
    measurement.loss_scale = scale.CastTo(DType::kFloat64).data<double>()[0];
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> skipped, TakeMeter(kSkippedMeter));
    measurement.skipped_steps = static_cast<int64_t>(skipped[0]);
  }
  return measurement;
}

absl::Status Replica::Replace(const std::string& name, const std::string& by, bool is_alike,
                              std::vector<NamedTensor>* own) {
  if (name == by && is_alike) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(Tensor value, variables_->Read(name));
  own->emplace_back(name, std::move(value));
  if (name != by) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor other, variables_->Read(by));
    TANDEM_RETURN_IF_ERROR(variables_->Write(name, other));
  }
  if (is_alike) return absl::OkStatus();
  return AverageVariable(name, context_.dealt->averaging.Shares(), variables_.get(), &communicator_);
}

absl::Status Replica::ReplaceParameters(int64_t steps, std::vector<NamedTensor>* own) {
  const bool are_alike = replicas_ == 1 || context_.dealt->averaging.AlikeAfter(steps).parameters;
  for (const Parameter& parameter : parameters_) {
    TANDEM_RETURN_IF_ERROR(
        Replace(parameter.name, ExportedBy(parameter.name), are_alike || parameter.frozen, own));
  }
  return absl::OkStatus();
}

absl::Status Replica::PutBack(const std::vector<NamedTensor>& own) {
  for (const auto& [name, value] : own) TANDEM_RETURN_IF_ERROR(variables_->Write(name, value));
  return absl::OkStatus();
}

absl::StatusOr<Measurement> Replica::Validate(int64_t steps, const std::function<bool()>& cancelled) {
  std::vector<NamedTensor> own;
  TANDEM_RETURN_IF_ERROR(ReplaceParameters(steps, &own));
  const bool are_alike = replicas_ == 1 || context_.dealt->averaging.AlikeAfter(steps).statistics;
  for (const Statistic& statistic : statistics_) {
    TANDEM_RETURN_IF_ERROR(
        Replace(statistic.name, ExportedBy(statistic.name), are_alike || statistic.frozen, &own));
  }
  absl::StatusOr<Measurement> measurement = RunValidation(cancelled);
  TANDEM_RETURN_IF_ERROR(PutBack(own));
  return measurement;
}

absl::StatusOr<std::vector<double>> Replica::SumStatistics(int64_t steps,
                                                           const std::function<bool()>& cancelled) {
  std::vector<NamedTensor> own;
  TANDEM_RETURN_IF_ERROR(ReplaceParameters(steps, &own));
  const absl::Status status = RunStatistics(steps, cancelled);
  TANDEM_RETURN_IF_ERROR(PutBack(own));
  TANDEM_RETURN_IF_ERROR(status);
  return population_->TakeSums();
}

absl::Status Replica::RunStatistics(int64_t steps, const std::function<bool()>& cancelled) {
  Sampler& sampler = *context_.dealt->train;
  const Dataset& data = *train_data();
  // The samples and random numbers are those of the next epoch.
  const int64_t first_step = context_.dealt->length.EpochOf(steps) * sampler.steps_per_epoch();
  const int64_t end = first_step + sampler.steps_per_epoch();
  // No training step follows that would take its batches.
  earlier_wait_seconds_ += train_loader_->wait_seconds();
  train_loader_.reset();
  train_loader_ =
      std::make_unique<Loader>(&data, &sampler, rank_, first_step, end, LoaderDepth(data, resident_));
  for (int64_t step = first_step; step < end; ++step) {
    if (cancelled()) return absl::CancelledError("training was cancelled");
    TANDEM_ASSIGN_OR_RETURN(const Batch batch, train_loader_->Next());
    const auto inputs_of = [&](int64_t first) {
      return InputsOf(data, static_cast<const std::byte*>(batch.input) + first * data.sample_bytes(),
                      static_cast<const std::byte*>(batch.target) + first * data.target_bytes());
    };
    TANDEM_RETURN_IF_ERROR(
        population_->Add(sampler.BatchSamples(step - first_step), step, inputs_of, &communicator_));
  }
  return absl::OkStatus();
}

absl::StatusOr<Measurement> Replica::RunValidation(const std::function<bool()>& cancelled) {
  Measurement measurement;
  const v1::Training& training = context_.spec->training();
  if (Evaluator::IsNeeded(training)) {
    measurement.evaluator = std::make_shared<Evaluator>(training, ValidationTargetOf(context_.data->info));
  }
  for (int64_t step = 0; step < context_.dealt->validation->steps_per_epoch(); ++step) {
    if (cancelled()) return absl::CancelledError("validation was cancelled");
    TANDEM_ASSIGN_OR_RETURN(const Batch batch, validation_loader_->Next());
    if (batch.samples == 0) continue;
    measurement.samples += batch.samples;
    Executable& executable = *validation_[batch.samples];
    TANDEM_RETURN_IF_ERROR(executable.Run(InputsOf(*validation_data(), batch.input, batch.target), nullptr));
    if (measurement.evaluator == nullptr) continue;
    TANDEM_ASSIGN_OR_RETURN(const Tensor outputs, executable.Output(0));
    measurement.evaluator->Add(outputs, batch.target);
  }
  if (measurement.samples > 0) {
    TANDEM_ASSIGN_OR_RETURN(measurement.sums, TakeMeter(kValidationMeter));
  }
  return measurement;
}

KeptVariables Replica::kept() const {
  KeptVariables kept;
  for (const Statistic& statistic : statistics_) {
    kept.statistics.push_back(statistic.name);
    if (statistic.frozen) kept.frozen.insert(statistic.name);
  }
  for (const Statistic& statistic : statistics_) {
    if (HasAverage(statistic.name)) kept.statistics.push_back(AverageName(statistic.name));
  }
  for (const Parameter& parameter : parameters_) {
    kept.parameters.push_back(parameter.name);
    if (parameter.frozen) kept.frozen.insert(parameter.name);
  }
  for (const std::string& name : variables_->names()) {
    const absl::StatusOr<VariableKind> kind = variables_->kind(name);
    if (kind.ok() && *kind == VariableKind::kOptimizerState) kept.optimizer_state.push_back(name);
    if (kind.ok() && *kind == VariableKind::kResidual) kept.residuals.push_back(name);
  }
  // Sorted, so that all replicas have the same order, whichever executable declared the variables first.
  std::sort(kept.optimizer_state.begin(), kept.optimizer_state.end());
  std::sort(kept.residuals.begin(), kept.residuals.end());
  return kept;
}

absl::Status Replica::RestoreVariables(const std::map<std::string, const Tensor*>& values) {
  // Loss scaling and compression start anew if the checkpoint lacks their variables. Variables that this job
  // does not have are ignored.
  TANDEM_RETURN_IF_ERROR(InitializeLossScale());
  const size_t given = std::count_if(values.begin(), values.end(),
                                     [&](const auto& value) { return !MayBeMissing(value.first); });
  size_t wanted = 0;
  for (const std::string& name : variables_->names()) {
    TANDEM_ASSIGN_OR_RETURN(const VariableKind kind, variables_->kind(name));
    if (kind == VariableKind::kMeter) continue;
    const auto found = values.find(name);
    if (MayBeMissing(name)) {
      if (found == values.end()) continue;
      // Factors of another rank.
      TANDEM_ASSIGN_OR_RETURN(const Tensor own, variables_->Read(name));
      if (own.shape() != found->second->shape()) continue;
    } else {
      ++wanted;
    }
    if (found == values.end()) {
      return absl::FailedPreconditionError(absl::StrCat("the checkpoint has no \"", name, "\""));
    }
    const absl::Status written = variables_->Write(name, *found->second);
    if (!written.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint is of another job: ", written.message()));
    }
  }
  if (wanted == given) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the checkpoint is of another job: it has ", given,
                                                    " variables for a replica that has ", wanted));
}

}  // namespace tandem
