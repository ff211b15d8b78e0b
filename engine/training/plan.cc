#include "engine/training/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/dealing.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/ops/unscale_gradients.h"
#include "engine/initializers/initializer.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/metrics/evaluator.h"
#include "engine/metrics/metric.h"
#include "engine/optimizers/optimizer.h"
#include "engine/schedules/schedule.h"
#include "engine/training/early_stopping.h"
#include "engine/training/job_checks.h"
#include "engine/training/parameter_tracker.h"
#include "engine/training/replica_spec.h"
#include "engine/training/resident_data.h"
#include "engine/training/step_graph.h"
#include "engine/training/targets.h"
#include "engine/training/training_length.h"
#include "engine/training/watched_measure.h"

namespace tandem {
namespace {

constexpr int kDefaultRestarts = 3;

// Adds up the memory of a replica's graphs.
class MemoryTally {
 public:
  // `most_workspace` is the limit on a step's workspace.
  explicit MemoryTally(int64_t most_workspace) : most_workspace_(most_workspace) {}

  void Add(const Graph& graph) {
    const int64_t arena_bytes = PlanMemory(graph).arena_bytes;
    others_.activations += arena_bytes;
    others_.workspace += std::min(WorkspaceShareBytes(arena_bytes), most_workspace_);
    for (const ValueId id : graph.variables()) variables_[graph.value(id).name] = graph.value(id);
    for (const Node& node : graph.nodes()) ops_.insert(std::string(node.op->kind()));
  }

  // Adds a loader's batches: the prepared batches and the current batch, each as large as the largest.
  void AddBatches(int64_t batch_bytes, int prefetch) { others_.data += batch_bytes * (1 + prefetch); }

  int64_t variable_bytes() const {
    int64_t total = 0;
    for (const auto& [name, value] : variables_) total += DenseBytes(value);
    return total;
  }
  int64_t residual_bytes() const {
    int64_t total = 0;
    for (const auto& [name, value] : variables_) {
      if (value.variable_kind == VariableKind::kResidual) total += DenseBytes(value);
    }
    return total;
  }
  int64_t resident_bytes() const {
    int64_t total = 0;
    for (const auto& [name, value] : variables_) {
      if (absl::StartsWith(name, kDataPrefix)) total += DenseBytes(value);
    }
    return total;
  }
  MemoryGroups groups() const {
    MemoryGroups groups = others_;
    groups.workspace += kWorkspaceCapBytes;
    for (const auto& [name, value] : variables_) {
      groups.*MemoryGroups::GroupOf(value.variable_kind) += DenseBytes(value);
    }
    return groups;
  }
  std::vector<std::string> ops() const { return {ops_.begin(), ops_.end()}; }

 private:
  const int64_t most_workspace_;
  MemoryGroups others_;  // Of everything except variables.
  std::map<std::string, Value> variables_;
  std::set<std::string> ops_;
};

// Returns the limit on an executable's workspace, beside its share of kWorkspaceCapBytes.
int64_t MostWorkspace(const v1::JobSpec& spec) {
  if (spec.replicas().device_kind() != v1::DEVICE_KIND_GPU) return std::numeric_limits<int64_t>::max();
  return spec.gpu().workspace_limit_bytes() > 0 ? spec.gpu().workspace_limit_bytes()
                                                : kGpuWorkspaceLimitBytes;
}

int64_t InputBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const ValueId input : graph.inputs()) bytes += DenseBytes(graph.value(input));
  return bytes;
}

// Returns the bytes of the samplers' orders: of the current epoch, of the previous epoch and, for prepared
// batches, of the next epoch. Balanced orders also need the samples of each class.
int64_t OrderBytes(const v1::JobSpec& spec, int64_t epochs, const DatasetInfo& dataset) {
  // Statistics are taken in the order of another epoch.
  if (WantsPopulationStatistics(spec)) ++epochs;
  int64_t orders = spec.training().shuffle() ? std::min<int64_t>(3, epochs) : 1;
  if (spec.training().balance_samples()) ++orders;
  return (orders * dataset.train_samples + dataset.validation_samples) *
         static_cast<int64_t>(sizeof(uint32_t));
}

// Sets a missing interval to an epoch.
template <typename Interval>
void FillIntervalDefaults(Interval* interval) {
  if (interval->every_epochs() == 0 && interval->every_steps() == 0) interval->set_every_epochs(1);
}

void FillScalingDefaults(v1::LossScaling* scaling) {
  const LossScalingSettings defaults;
  if (!scaling->has_initial_scale()) scaling->set_initial_scale(65536);
  if (!scaling->has_growth_factor()) scaling->set_growth_factor(defaults.growth_factor);
  if (!scaling->has_backoff_factor()) scaling->set_backoff_factor(defaults.backoff_factor);
  if (scaling->growth_interval() == 0) scaling->set_growth_interval(defaults.growth_interval);
}

// Call it after the metrics' defaults are set.
void FillStoppingDefaults(v1::Training* training) {
  if (training->has_early_stopping()) FillEarlyStoppingDefaults(training->mutable_early_stopping());
  // A missing best_model stays missing, so that a fork that sets it keeps the best weights.
  if (!training->has_best_model()) return;
  v1::BestModel* best = training->mutable_best_model();
  if (!best->has_keep_weights()) best->set_keep_weights(true);
}

// Returns the batch sizes of a pass over `samples` samples: the full batch, then a shorter last batch unless
// it is dropped.
std::vector<int64_t> BatchSizes(int64_t samples, int64_t batch, bool drop_last) {
  std::vector<int64_t> sizes;
  if (samples >= batch) sizes.push_back(batch);
  if (samples % batch != 0 && !drop_last) sizes.push_back(samples % batch);
  return sizes;
}

}  // namespace

DType ComputeTypeOf(const v1::Training& training) {
  switch (training.precision()) {
    case v1::PRECISION_BFLOAT16:
      return DType::kBFloat16;
    case v1::PRECISION_FLOAT16:
      return DType::kFloat16;
    default:
      return DType::kFloat32;
  }
}

void FillDefaults(v1::JobSpec* spec) {
  if (spec->name().empty()) spec->set_name("job");
  FillModelDefaults(spec->mutable_model());
  v1::Training* training = spec->mutable_training();
  FillLossDefaults(training->mutable_loss());
  FillMetricDefaults(training);
  FillOptimizerDefaults(training->mutable_optimizer());
  if (training->has_schedule()) FillScheduleDefaults(training->mutable_schedule());
  if (!training->has_shuffle()) training->set_shuffle(true);
  v1::ReportInterval* report = training->mutable_report();
  if (report->every_seconds() == 0 && report->every_steps() == 0) report->set_every_seconds(1);
  const int64_t batch = training->global_batch_size();
  if (training->validation_batch_size() == 0 && batch > 0 && batch <= kMaxCount) {
    training->set_validation_batch_size(2 * batch);
  }
  FillStoppingDefaults(training);
  if (training->has_weight_average() && !training->weight_average().has_decay()) {
    training->mutable_weight_average()->set_decay(0.999);
  }
  if (training->precision() == v1::PRECISION_FLOAT16) {
    FillScalingDefaults(training->mutable_loss_scaling());
  }
  if (training->accumulation_steps() == 0) training->set_accumulation_steps(1);
  FillIntervalDefaults(training->mutable_validation());
  if (!spec->checkpoints().off()) {
    FillIntervalDefaults(spec->mutable_checkpoints());
    if (spec->checkpoints().keep_last() == 0) spec->mutable_checkpoints()->set_keep_last(1);
  }
  if (!spec->has_max_restarts()) spec->set_max_restarts(kDefaultRestarts);
  FillReplicasDefaults(spec->mutable_replicas());
}

absl::Status CheckJob(const v1::JobSpec& job) {
  v1::JobSpec spec = job;
  FillDefaults(&spec);
  FieldViolations violations;
  CheckFilledJob(spec, violations);
  return violations.ToStatus();
}

namespace {

// INVALID_ARGUMENT if the parameter's initial values would take minutes.
absl::Status CheckDrawing(const Parameter& parameter) {
  if (parameter.initializer.kind_case() != v1::Initializer::kOrthogonal) return absl::OkStatus();
  const double products = OrthogonalProducts(parameter.shape);
  constexpr double kMostProducts = 2e11;
  if (products <= kMostProducts) return absl::OkStatus();
  return FieldError(
      "model",
      absl::StrCat("has an orthogonal initializer for ", parameter.name, " ", parameter.shape.ToString(),
                   ", which is too large to be made orthogonal; give this layer another "
                   "weight_initializer, such as he"));
}

// Plans a job after its checks.
absl::StatusOr<JobPlan> PlanChecked(const v1::JobSpec& spec, const DatasetInfo& dataset, bool resident) {
  const v1::Training& training = spec.training();
  const bool steps_alone = spec.replicas().has_parameter_averaging();
  const DType dtype =
      spec.replicas().device_kind() == v1::DEVICE_KIND_REFERENCE ? DType::kFloat64 : DType::kFloat32;
  // The first replica has the largest share.
  const std::vector<double> loads = LargestLoads(spec.replicas());
  const int replicas = steps_alone ? 1 : static_cast<int>(loads.size());
  JobPlan plan;
  MemoryTally tally(MostWorkspace(spec));
  int64_t batch_bytes = 0;
  int64_t reported = 0;  // The elements of the parameters that report_parameters copies.
  for (const int64_t batch :
       BatchSizes(dataset.train_samples, training.global_batch_size(), training.drop_last())) {
    const std::vector<int64_t> shares = DealSamples(batch, loads);
    StepShape whole{.samples = shares[0],
                    .batch_samples = batch,
                    .replicas = replicas,
                    .dtype = dtype,
                    .resident = resident};
    int64_t share_bytes = 0;
    int64_t part_bytes = 0;
    int64_t samples_before = 0;  // Of the previous early part. Equal parts share an executable.
    for (const StepShape& shape : PartsOf(whole, training.accumulation_steps())) {
      if (shape.is_early && shape.samples == samples_before) {
        share_bytes += part_bytes;
        continue;
      }
      TANDEM_ASSIGN_OR_RETURN(const StepGraph step, BuildTrainingGraph(spec, dataset, shape));
      tally.Add(step.graph);
      if (WantsPopulationStatistics(spec)) {
        TANDEM_ASSIGN_OR_RETURN(const StepGraph statistics, BuildStatisticsGraph(spec, dataset, shape));
        tally.Add(statistics.graph);
      }
      samples_before = shape.samples;
      part_bytes = InputBytes(step.graph);
      share_bytes += part_bytes;
      plan.parameters = reported = 0;
      for (size_t i = 0; i < step.parameters.size(); ++i) {
        const Parameter& parameter = step.parameters[i];
        TANDEM_RETURN_IF_ERROR(CheckDrawing(parameter));
        plan.parameters += parameter.shape.elements();
        if (i < ParameterTracker::kMostParameters) reported += parameter.shape.elements();
      }
    }
    batch_bytes = std::max(batch_bytes, share_bytes);
    // A graph may accept the largest share and refuse the smallest, as batch normalisation refuses a single
    // sample. Measured loads are used only if no replica refuses its share.
    for (const int64_t share : DealSamples(batch, LoadsOf(spec.replicas()))) {
      if (share > 0) whole.samples = std::min(whole.samples, share);
    }
    if (whole.samples != shares[0]) {
      const StepShape least = PartsOf(whole, training.accumulation_steps()).back();
      TANDEM_RETURN_IF_ERROR(BuildTrainingGraph(spec, dataset, least).status());
    }
  }
  if (plan.parameters == 0) {
    return FieldError("model.layers", "have nothing to learn; add a layer with weights, such as dense");
  }
  tally.AddBatches(batch_bytes, spec.replicas().prefetch());
  batch_bytes = 0;
  for (const int64_t batch :
       BatchSizes(dataset.validation_samples, training.validation_batch_size(), /*drop_last=*/false)) {
    TANDEM_ASSIGN_OR_RETURN(const StepGraph step,
                            BuildValidationGraph(spec, dataset, DealSamples(batch, loads)[0], dtype,
                                                 resident && ValidatesResident(spec)));
    tally.Add(step.graph);
    batch_bytes = std::max(batch_bytes, InputBytes(step.graph));
  }
  tally.AddBatches(batch_bytes, spec.replicas().prefetch());
  const int64_t batch = training.global_batch_size();
  plan.steps_per_epoch = (dataset.train_samples + (training.drop_last() ? 0 : batch - 1)) / batch;
  const TrainingLength length = TrainingLength::Of(training, plan.steps_per_epoch);
  plan.steps = length.steps;
  plan.memory = tally.groups();
  plan.replica_memory_bytes = plan.memory.total();
  plan.resident_bytes = tally.resident_bytes();
  // Each worker has its own data.
  plan.host_memory_bytes =
      spec.replicas().workers() *
      (dataset.memory_bytes + OrderBytes(spec, length.epochs, dataset) +
       Evaluator::HostBytes(training, ValidationTargetOf(dataset), dataset.validation_samples));
  // A copy of the variables for writing a checkpoint, for each replica whose variables differ.
  if (!spec.checkpoints().off()) {
    const int64_t bytes = tally.variable_bytes() - plan.resident_bytes;
    const int64_t own_bytes = steps_alone ? bytes : tally.residual_bytes();
    plan.host_memory_bytes += bytes + (static_cast<int64_t>(loads.size()) - 1) * own_bytes;
  }
  if (training.report_parameters()) plan.host_memory_bytes += 2 * reported * SizeOf(dtype);
  // Samples are assembled on the host before they are copied to a device.
  plan.host_memory_bytes += plan.resident_bytes;
  plan.ops = tally.ops();
  return plan;
}

}  // namespace

absl::StatusOr<JobPlan> PlanJob(const v1::JobSpec& job, const DatasetInfo& dataset) {
  v1::JobSpec spec = job;
  FillDefaults(&spec);
  FieldViolations violations;
  const std::vector<Shape> outputs = CheckFilledJob(spec, violations);
  violations.AddAll("training.loss",
                    RelabelClasses(dataset.class_labels, spec.mutable_training()->mutable_loss()));
  CheckJobAgainstData(spec, outputs, dataset, violations);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());

  const bool resident = WantsResidentData(spec, dataset);
  TANDEM_ASSIGN_OR_RETURN(JobPlan plan, PlanChecked(spec, dataset, resident));
  const int64_t limit = spec.gpu().memory_limit_bytes();
  const bool must = spec.gpu().data() == v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY;
  if (!resident || must || limit <= 0 || plan.replica_memory_bytes <= limit) return plan;
  return PlanChecked(spec, dataset, /*resident=*/false);
}

}  // namespace tandem
