#include "engine/training/replica.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/initializers/initializer.h"
#include "engine/training/step_graph.h"
#include "engine/training/targets.h"

namespace tandem {
namespace {

// Of validation, which comes as often as it does.
constexpr int64_t kAnyNumberOfSteps = std::numeric_limits<int64_t>::max();

// Beyond all steps.
constexpr int64_t kPartStride = int64_t{1} << 40;

}  // namespace

Replica::Replica(const ReplicaContext& context, std::unique_ptr<Device> device, Communicator* communicator)
    : context_(context),
      rank_(communicator->rank()),
      replicas_(communicator->world_size()),
      communicator_(communicator),
      device_(std::move(device)) {}

absl::Status Replica::CompileTraining(int64_t step_of_epoch) {
  const int64_t batch = context_.train_sampler->BatchSamples(step_of_epoch);
  std::vector<Part>& parts = steps_[batch];
  if (!parts.empty()) return absl::OkStatus();
  const StepShape whole = {.samples = context_.train_sampler->ShareSamples(step_of_epoch, rank_),
                           .first_sample = context_.train_sampler->ShareFirst(step_of_epoch, rank_),
                           .batch_samples = batch,
                           .replicas = replicas_,
                           .dtype = device_->dtype()};
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
  return absl::OkStatus();
}

absl::Status Replica::Open(const Replica* like) {
  variables_ = device_->CreateVariables(like == nullptr ? nullptr : like->variables_.get());
  Sampler& sampler = *context_.train_sampler;
  TANDEM_RETURN_IF_ERROR(CompileTraining(0));
  TANDEM_RETURN_IF_ERROR(CompileTraining(sampler.steps_per_epoch() - 1));
  const int prefetch = context_.spec->replicas().prefetch();
  train_loader_ = std::make_unique<Loader>(context_.data->train.get(), &sampler, rank_, context_.first_step,
                                           context_.steps, prefetch);
  if (context_.validation_sampler == nullptr) return absl::OkStatus();

  for (const int64_t step : {int64_t{0}, context_.validation_sampler->steps_per_epoch() - 1}) {
    const int64_t samples = context_.validation_sampler->ShareSamples(step, rank_);
    if (samples == 0 || validation_.count(samples) != 0) continue;
    TANDEM_ASSIGN_OR_RETURN(const StepGraph graph, BuildValidationGraph(*context_.spec, context_.data->info,
                                                                        samples, device_->dtype()));
    TANDEM_ASSIGN_OR_RETURN(validation_[samples], device_->Compile(graph.graph, variables_.get()));
  }
  validation_loader_ = std::make_unique<Loader>(context_.data->validation.get(), context_.validation_sampler,
                                                rank_, /*first_step=*/0, kAnyNumberOfSteps, prefetch);
  return absl::OkStatus();
}

int64_t Replica::bytes() const {
  int64_t bytes = variables_->bytes() + train_loader_->bytes();
  if (validation_loader_ != nullptr) bytes += validation_loader_->bytes();
  for (const auto& executable : training_) bytes += executable->bytes();
  for (const auto& [samples, executable] : validation_) bytes += executable->bytes();
  return bytes;
}

absl::Status Replica::InitializeParameters() {
  const auto given = [this](const std::string& name) {
    const auto found = context_.initial_weights->find(name);
    return found == context_.initial_weights->end() ? nullptr : &found->second;
  };
  for (const Parameter& parameter : parameters_) {
    if (rank_ == 0) {
      const Tensor* const weight = given(parameter.name);
      TANDEM_RETURN_IF_ERROR(variables_->Write(
          parameter.name, weight != nullptr
                              ? *weight
                              : Initialize(parameter.initializer, parameter.shape, parameter.fans,
                                           context_.spec->training().seed(), parameter.name)));
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
  for (const Parameter& parameter : parameters_) {
    if (!variables_->kind(AverageName(parameter.name)).ok()) continue;
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, variables_->Read(parameter.name));
    TANDEM_RETURN_IF_ERROR(variables_->Write(AverageName(parameter.name), value));
  }
  return absl::OkStatus();
}

absl::Status Replica::TrainStep(int64_t step) {
  const Batch batch = train_loader_->Next();
  const int64_t step_of_epoch = step % context_.train_sampler->steps_per_epoch();
  const std::vector<Part>& parts = steps_[context_.train_sampler->BatchSamples(step_of_epoch)];
  const double learning_rate = context_.learning_rate->Rate(step);
  samples_ += batch.samples;
  if (batch.samples == 0) return parts[0].executable->Run({&learning_rate, &step}, &communicator_);
  const auto* input = static_cast<const std::byte*>(batch.input);
  const auto* target = static_cast<const std::byte*>(batch.target);
  for (size_t i = 0; i < parts.size(); ++i) {
    // The random numbers of an early part follow from a number of its own in place of the step.
    const int64_t random_step =
        i + 1 < parts.size() ? step + static_cast<int64_t>(i + 1) * kPartStride : step;
    TANDEM_RETURN_IF_ERROR(
        parts[i].executable->Run({input, target, &learning_rate, &random_step}, &communicator_));
    input += parts[i].samples * context_.data->train->sample_bytes();
    target += parts[i].samples * context_.data->train->target_bytes();
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
  measurement.samples = std::exchange(samples_, 0);
  const double waited = train_loader_->wait_seconds();
  measurement.data_wait_seconds = waited - std::exchange(wait_seconds_, waited);
  const double reduced = communicator_.seconds();
  measurement.reduce_seconds = reduced - std::exchange(reduce_seconds_, reduced);
  return measurement;
}

absl::StatusOr<Measurement> Replica::Validate(const std::function<bool()>& cancelled) {
  // The moving averages take the parameters' places meanwhile.
  std::vector<NamedTensor> own;
  for (const Parameter& parameter : parameters_) {
    const absl::StatusOr<Tensor> average = variables_->Read(AverageName(parameter.name));
    if (absl::IsNotFound(average.status())) continue;
    TANDEM_RETURN_IF_ERROR(average.status());
    TANDEM_ASSIGN_OR_RETURN(Tensor value, variables_->Read(parameter.name));
    own.emplace_back(parameter.name, std::move(value));
    TANDEM_RETURN_IF_ERROR(variables_->Write(parameter.name, *average));
  }
  absl::StatusOr<Measurement> measurement = ValidateWithMeans(cancelled);
  for (const auto& [name, value] : own) TANDEM_RETURN_IF_ERROR(variables_->Write(name, value));
  return measurement;
}

absl::StatusOr<Measurement> Replica::ValidateWithMeans(const std::function<bool()>& cancelled) {
  if (statistics_.empty() || replicas_ == 1) return RunValidation(cancelled);
  std::vector<Tensor> own;
  for (const Statistic& statistic : statistics_) {
    TANDEM_ASSIGN_OR_RETURN(own.emplace_back(), variables_->Read(statistic.name));
    TANDEM_ASSIGN_OR_RETURN(const BufferView view, variables_->View(statistic.name));
    TANDEM_RETURN_IF_ERROR(communicator_.AllReduce(view, ReduceOp::kAverage));
  }
  absl::StatusOr<Measurement> measurement = RunValidation(cancelled);
  for (size_t i = 0; i < own.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(variables_->Write(statistics_[i].name, own[i]));
  }
  return measurement;
}

absl::StatusOr<Measurement> Replica::RunValidation(const std::function<bool()>& cancelled) {
  Measurement measurement;
  const v1::Training& training = context_.spec->training();
  if (Evaluator::IsNeeded(training)) {
    measurement.evaluator = std::make_shared<Evaluator>(training, ValidationTargetOf(context_.data->info));
  }
  for (int64_t step = 0; step < context_.validation_sampler->steps_per_epoch(); ++step) {
    if (cancelled()) return absl::CancelledError("validation was cancelled");
    const Batch batch = validation_loader_->Next();
    if (batch.samples == 0) continue;
    measurement.samples += batch.samples;
    Executable& executable = *validation_[batch.samples];
    TANDEM_RETURN_IF_ERROR(executable.Run({batch.input, batch.target}, nullptr));
    if (measurement.evaluator == nullptr) continue;
    TANDEM_ASSIGN_OR_RETURN(const Tensor outputs, executable.Output(0));
    measurement.evaluator->Add(outputs, batch.target);
  }
  if (measurement.samples > 0) {
    TANDEM_ASSIGN_OR_RETURN(measurement.sums, TakeMeter(kValidationMeter));
  }
  return measurement;
}

absl::StatusOr<ReplicaVariables> Replica::ReadVariables() const {
  if (variables_ == nullptr) return absl::FailedPreconditionError("there are no parameters yet");
  ReplicaVariables copies;
  const auto copy = [this](const std::string& name, std::vector<NamedTensor>& to) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(Tensor value, variables_->Read(name));
    to.emplace_back(name, std::move(value));
    return absl::OkStatus();
  };
  for (const Statistic& statistic : statistics_) {
    TANDEM_RETURN_IF_ERROR(copy(statistic.name, copies.statistics));
  }
  if (rank_ != 0) return copies;
  for (const Parameter& parameter : parameters_) {
    TANDEM_RETURN_IF_ERROR(copy(parameter.name, copies.parameters));
  }
  for (const std::string& name : variables_->names()) {
    TANDEM_ASSIGN_OR_RETURN(const VariableKind kind, variables_->kind(name));
    if (kind == VariableKind::kOptimizerState) TANDEM_RETURN_IF_ERROR(copy(name, copies.optimizer_state));
  }
  return copies;
}

absl::Status Replica::RestoreVariables(const std::map<std::string, const Tensor*>& values) {
  size_t wanted = 0;
  for (const std::string& name : variables_->names()) {
    TANDEM_ASSIGN_OR_RETURN(const VariableKind kind, variables_->kind(name));
    if (kind == VariableKind::kMeter) continue;
    ++wanted;
    const auto found = values.find(name);
    if (found == values.end()) {
      return absl::FailedPreconditionError(absl::StrCat("the checkpoint has no \"", name, "\""));
    }
    const absl::Status written = variables_->Write(name, *found->second);
    if (!written.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint is of another job: ", written.message()));
    }
  }
  if (wanted == values.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the checkpoint is of another job: it has ",
                                                    values.size(), " variables for a replica that has ",
                                                    wanted));
}

}  // namespace tandem
