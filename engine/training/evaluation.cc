#include "engine/training/evaluation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/loader.h"
#include "engine/data/sampler.h"
#include "engine/graph/memory_plan.h"
#include "engine/layers/model.h"
#include "engine/metrics/evaluator.h"
#include "engine/metrics/meter.h"
#include "engine/metrics/metric.h"
#include "engine/training/measurement.h"
#include "engine/training/replica_spec.h"
#include "engine/training/step_graph.h"
#include "engine/training/targets.h"

namespace tandem {
namespace {

// The samples to measure, and the order in which replicas would take them.
struct Part {
  ModelSamples chosen;
  std::unique_ptr<Sampler> sampler;

  const DatasetInfo& info() const { return chosen.data.info; }
};

absl::StatusOr<Part> OpenPart(const TrainedModel& model, const EvaluationRequest& request,
                              const v1::JobSpec& spec) {
  Part part;
  TANDEM_ASSIGN_OR_RETURN(part.chosen, OpenModelSamples(model, request.samples));
  part.sampler = std::make_unique<Sampler>(Sampler::Options{.samples = part.chosen.samples->size(),
                                                            .batch = spec.training().validation_batch_size(),
                                                            .loads = LoadsOf(spec.replicas()),
                                                            .shuffle = false,
                                                            .seed = 0});
  return part;
}

// Checks that the data's targets fit the loss and the metrics.
absl::Status CheckTargets(const v1::JobSpec& spec, const Part& part) {
  const DatasetInfo& info = part.info();
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Shape> outputs, CheckModel(spec.model()));
  TANDEM_ASSIGN_OR_RETURN(const std::string range_fault,
                          TargetRangeFault(spec.training().loss(), *part.chosen.samples, info));
  if (!range_fault.empty()) return FieldError("dataset", absl::StrCat("has targets that ", range_fault));
  return CheckMetricTargets(spec.training(), ValidationTargetOf(info), outputs.back(),
                            part.chosen.samples->size());
}

// Gives the job's variables the layouts of its training, so that the computation is equal bit for bit. If the
// device has too little memory for the training graph, variables get other layouts.
absl::Status SettleLayouts(const v1::JobSpec& spec, const DatasetInfo& info, int64_t memory_bytes,
                           Device& device, Variables* variables) {
  const int64_t batch = std::min(spec.training().global_batch_size(), info.train_samples);
  const Sampler sampler(Sampler::Options{
      .samples = batch, .batch = batch, .loads = LoadsOf(spec.replicas()), .shuffle = false, .seed = 0});
  const absl::StatusOr<StepGraph> step = BuildTrainingGraph(
      spec, info,
      {.samples = sampler.ShareSamples(0, 0),
       .batch_samples = batch,
       .replicas =
           spec.replicas().has_parameter_averaging() ? 1 : static_cast<int>(LoadsOf(spec.replicas()).size()),
       .dtype = device.dtype()});
  // Other data may have too few samples for training.
  if (!step.ok()) return absl::OkStatus();
  if (memory_bytes > 0 && PlanMemory(step->graph).arena_bytes > memory_bytes) return absl::OkStatus();
  return device.Compile(step->graph, variables).status();
}

class Evaluating {
 public:
  Evaluating(const v1::JobSpec& spec, const EvaluationRequest& request, Part part, Device& device)
      : spec_(spec), request_(request), part_(std::move(part)), device_(device) {}

  absl::StatusOr<v1::Evaluation> Run(const TrainedModel& model) {
    variables_ = device_.CreateVariables();
    TANDEM_RETURN_IF_ERROR(
        SettleLayouts(spec_, part_.info(), request_.memory_bytes, device_, variables_.get()));
    std::vector<Measurement> shares;
    for (size_t rank = 0; rank < LoadsOf(spec_.replicas()).size(); ++rank) {
      TANDEM_ASSIGN_OR_RETURN(shares.emplace_back(), RunShare(static_cast<int>(rank), model));
    }
    const Measurement total = TotalOf(shares);
    v1::Evaluation evaluation;
    ReadMeter(spec_.training(), total.sums, &evaluation);
    if (total.evaluator != nullptr) total.evaluator->Fill(&evaluation);
    if (const auto& preparation = model.trained_on.preparation; preparation.has_value()) {
      RestoreTargetScale(spec_.training(), preparation->target_deviation(), &evaluation);
    }
    evaluation.set_samples(total.samples);
    return evaluation;
  }

 private:
  // Measures the whole share of replica `rank` of the job.
  absl::StatusOr<Measurement> RunShare(int rank, const TrainedModel& model) {
    Measurement measurement;
    if (Evaluator::IsNeeded(spec_.training())) {
      measurement.evaluator = std::make_shared<Evaluator>(spec_.training(), ValidationTargetOf(part_.info()));
    }
    Loader loader(part_.chosen.samples, part_.sampler.get(), rank, /*first_step=*/0,
                  part_.sampler->steps_per_epoch(), spec_.replicas().prefetch());
    for (int64_t step = 0; step < part_.sampler->steps_per_epoch(); ++step) {
      const absl::StatusOr<Batch> loaded = loader.Next();
      if (absl::IsDataLoss(loaded.status())) return FieldError("dataset", loaded.status().message());
      TANDEM_RETURN_IF_ERROR(loaded.status());
      const Batch& batch = *loaded;
      if (batch.samples == 0) continue;
      TANDEM_ASSIGN_OR_RETURN(Executable * executable, ExecutableFor(batch.samples, model));
      TANDEM_RETURN_IF_ERROR(executable->Run({batch.input, batch.target}, nullptr));
      measurement.samples += batch.samples;
      done_ += batch.samples;
      if (request_.on_progress) request_.on_progress(done_, part_.chosen.samples->size());
      if (measurement.evaluator == nullptr) continue;
      TANDEM_ASSIGN_OR_RETURN(const Tensor outputs, executable->Output(0));
      measurement.evaluator->Add(outputs, batch.target);
    }
    if (measurement.samples == 0) return measurement;
    TANDEM_ASSIGN_OR_RETURN(const Tensor meter, variables_->Read(kValidationMeter));
    TANDEM_RETURN_IF_ERROR(variables_->Clear(kValidationMeter));
    const absl::Span<const double> sums = meter.data<double>();
    measurement.sums.assign(sums.begin(), sums.end());
    return measurement;
  }

  absl::StatusOr<Executable*> ExecutableFor(int64_t samples, const TrainedModel& model) {
    std::unique_ptr<Executable>& executable = executables_[samples];
    if (executable != nullptr) return executable.get();
    TANDEM_ASSIGN_OR_RETURN(const StepGraph step,
                            BuildValidationGraph(spec_, part_.info(), samples, device_.dtype()));
    const int64_t bytes = PlanMemory(step.graph).arena_bytes + part_.info().memory_bytes;
    if (request_.memory_bytes > 0 && bytes > request_.memory_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "batches of ", samples, " samples need ", bytes >> 20, " MiB of memory with the data; ",
          request_.memory_bytes >> 20, " MiB are allowed: give a smaller batch_size"));
    }
    TANDEM_ASSIGN_OR_RETURN(executable, device_.Compile(step.graph, variables_.get()));
    if (executables_.size() == 1) TANDEM_RETURN_IF_ERROR(WriteWeights(model, *variables_));
    return executable.get();
  }

  const v1::JobSpec& spec_;
  const EvaluationRequest& request_;
  const Part part_;
  Device& device_;
  std::unique_ptr<Variables> variables_;
  std::map<int64_t, std::unique_ptr<Executable>> executables_;  // By samples.
  int64_t done_ = 0;                                            // Samples.
};

}  // namespace

absl::StatusOr<v1::Evaluation> EvaluateModel(const TrainedModel& model, const EvaluationRequest& request,
                                             Device& device) {
  v1::JobSpec spec = model.spec;
  if (request.batch_size > 0) spec.mutable_training()->set_validation_batch_size(request.batch_size);
  v1::Training* const training = spec.mutable_training();
  bool has_default_k = false;
  if (!request.metrics.empty()) {
    training->clear_metrics();
    for (const v1::Metric metric : request.metrics) training->add_metrics(metric);
    // The job's k belongs to top_k. A job without top_k has no k.
    const auto& metrics = training->metrics();
    if (std::find(metrics.begin(), metrics.end(), v1::METRIC_TOP_K) == metrics.end()) training->clear_top_k();
    has_default_k = training->top_k() == 0;
    FillMetricDefaults(training);
  }
  // Field names of the training equal those of the request.
  TANDEM_RETURN_IF_ERROR(CheckMetrics(spec.training()));
  TANDEM_ASSIGN_OR_RETURN(Part part, OpenPart(model, request, spec));
  if (has_default_k) {
    training->set_top_k(std::min(training->top_k(), ValidationTargetOf(part.info()).classes));
  }
  TANDEM_RETURN_IF_ERROR(CheckTargets(spec, part));
  return Evaluating(spec, request, std::move(part), device).Run(model);
}

}  // namespace tandem
