#include "engine/training/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/dealing.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/ops/unscale_gradients.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/metrics/evaluator.h"
#include "engine/metrics/metric.h"
#include "engine/optimizers/optimizer.h"
#include "engine/schedules/schedule.h"
#include "engine/training/early_stopping.h"
#include "engine/training/initial_weights.h"
#include "engine/training/job_name.h"
#include "engine/training/layer_selection.h"
#include "engine/training/replica_spec.h"
#include "engine/training/resident_data.h"
#include "engine/training/sample_type.h"
#include "engine/training/step_graph.h"
#include "engine/training/step_schedule.h"
#include "engine/training/targets.h"
#include "engine/training/watched_measure.h"

namespace tandem {
namespace {

constexpr int kMaxPriority = 100;
constexpr int kMaxKeptCheckpoints = 100;
constexpr int kMaxRestarts = 100;
constexpr int kDefaultRestarts = 3;
constexpr double kMaxTimeLimitSeconds = 365.0 * 24 * 3600;
constexpr double kMinReportSeconds = 0.05;
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

// That a required count is in [1, kMaxCount].
void CheckCount(absl::string_view field, int64_t value, FieldViolations& violations) {
  if (value == 0) {
    violations.Add(field, "is 0 or left out; it must be at least 1");
  } else if (value < 0 || value > kMaxCount) {
    violations.Add(field, absl::StrCat("is ", value, "; it must be ",
                                       value < 0 ? "at least 1" : absl::StrCat("at most ", kMaxCount)));
  }
}

void CheckReport(const v1::ReportInterval& report, FieldViolations& violations) {
  const double seconds = report.every_seconds();
  if (seconds != 0 && !(seconds >= kMinReportSeconds && std::isfinite(seconds))) {
    violations.Add("training.report.every_seconds",
                   absl::StrCat("is ", seconds, "; it must be at least ", kMinReportSeconds));
  }
  if (report.every_steps() < 0) {
    violations.Add("training.report.every_steps",
                   absl::StrCat("is ", report.every_steps(), "; it must be at least 1"));
  }
}

void CheckPrecision(const v1::Training& training, FieldViolations& violations) {
  if (!v1::Precision_IsValid(training.precision())) {
    violations.Add("training.precision",
                   absl::StrCat("is ", static_cast<int>(training.precision()), ", which is no precision"));
  }
  if (!training.has_loss_scaling()) return;
  if (training.precision() != v1::PRECISION_FLOAT16) {
    violations.Add("training.loss_scaling", "is for PRECISION_FLOAT16 alone; leave it out");
  }
  const v1::LossScaling& scaling = training.loss_scaling();
  const auto check = [&](absl::string_view field, bool given, double value, bool good, const char* wanted) {
    if (!given || (good && std::isfinite(value))) return;
    violations.Add(absl::StrCat("training.loss_scaling.", field),
                   absl::StrCat("is ", value, "; it must be ", wanted));
  };
  check("initial_scale", scaling.has_initial_scale(), scaling.initial_scale(), scaling.initial_scale() > 0,
        "above 0");
  check("growth_factor", scaling.has_growth_factor(), scaling.growth_factor(), scaling.growth_factor() > 1,
        "above 1");
  check("backoff_factor", scaling.has_backoff_factor(), scaling.backoff_factor(),
        scaling.backoff_factor() > 0 && scaling.backoff_factor() < 1, "in (0, 1)");
  check("growth_interval", true, static_cast<double>(scaling.growth_interval()),
        scaling.growth_interval() >= 0, "at least 1");
}

// That an interval is of whole numbers from 1, and is there.
void CheckInterval(absl::string_view field, int64_t every_epochs, int64_t every_steps,
                   FieldViolations& violations) {
  const auto check = [&](absl::string_view name, int64_t value) {
    if (value >= 0 && value <= kMaxCount) return;
    violations.Add(absl::StrCat(field, ".", name),
                   absl::StrCat("is ", value, "; it must be from 1 to ", kMaxCount));
  };
  check("every_epochs", every_epochs);
  check("every_steps", every_steps);
}

void CheckLength(const v1::Training& training, FieldViolations& violations) {
  if (training.steps() == 0) return CheckCount("training.epochs", training.epochs(), violations);
  CheckCount("training.steps", training.steps(), violations);
  if (training.epochs() != 0) {
    violations.Add("training.steps", "is given beside training.epochs; give one of them");
  }
}

void CheckValidation(const v1::Training& training, FieldViolations& violations) {
  const v1::ValidationInterval& interval = training.validation();
  CheckInterval("training.validation", interval.every_epochs(), interval.every_steps(), violations);
  if (interval.every_epochs() != 0 && interval.every_steps() != 0) {
    violations.Add("training.validation", "gives every_epochs and every_steps; give one of them");
  }
}

void CheckBestModel(const v1::Training& training, FieldViolations& violations) {
  const v1::BestModel& best = training.best_model();
  CheckMeasure(training, "training.best_model", best.metric(), best.mode(), violations);
  if (best.export_best() && !best.keep_weights()) {
    violations.Add("training.best_model.export_best", "needs keep_weights, which is false");
  }
}

// For a job whose model is right.
void CheckStatistics(const v1::JobSpec& spec, FieldViolations& violations) {
  constexpr char kField[] = "training.batch_norm_statistics";
  const v1::BatchNormStatistics statistics = spec.training().batch_norm_statistics();
  if (!v1::BatchNormStatistics_IsValid(statistics)) {
    violations.Add(kField, absl::StrCat("is ", static_cast<int>(statistics), ", which is no such choice"));
  }
  if (!WantsPopulationStatistics(spec)) return;
  const absl::StatusOr<LayerTable> table = ListLayers(spec.model());
  if (!table.ok()) return;  // The plan says it.
  const std::set<std::string> frozen = TensorsOf(*table, spec.frozen_layers());
  const std::vector<Statistic>& all = table->statistics;
  if (all.empty()) {
    violations.Add(
        kField, "is BATCH_NORM_STATISTICS_POPULATION, but the model has no batch_norm layer; leave it out");
  } else if (std::all_of(all.begin(), all.end(),
                         [&](const Statistic& statistic) { return frozen.count(statistic.name) > 0; })) {
    violations.Add(kField,
                   "is BATCH_NORM_STATISTICS_POPULATION, but frozen_layers has every batch_norm layer, whose "
                   "statistics stay as they are; leave it out");
  }
  if (spec.training().best_model().export_best()) {
    violations.Add(
        "training.best_model.export_best",
        "is true, but training.batch_norm_statistics is BATCH_NORM_STATISTICS_POPULATION, and these "
        "are taken for the last weights alone; leave one of them out");
  }
}

void CheckCheckpoints(const v1::Checkpointing& checkpoints, FieldViolations& violations) {
  CheckInterval("checkpoints", checkpoints.every_epochs(), checkpoints.every_steps(), violations);
  if (checkpoints.off() && (checkpoints.every_epochs() != 0 || checkpoints.every_steps() != 0 ||
                            checkpoints.every_minutes() != 0)) {
    violations.Add("checkpoints.off", "is true, but an interval is given too; leave one of them out");
  }
  if (checkpoints.off() && (checkpoints.keep_last() != 0 || checkpoints.keep_best())) {
    violations.Add("checkpoints.off",
                   "is true, so that there is nothing to keep; leave it or keep_last and "
                   "keep_best out");
  }
  if (!(checkpoints.every_minutes() >= 0 && checkpoints.every_minutes() <= kMaxTimeLimitSeconds / 60)) {
    violations.Add("checkpoints.every_minutes",
                   absl::StrCat("is ", checkpoints.every_minutes(),
                                "; it must be above 0 and at most 525,600 (a year)"));
  }
  if (!checkpoints.off() && (checkpoints.keep_last() < 1 || checkpoints.keep_last() > kMaxKeptCheckpoints)) {
    violations.Add("checkpoints.keep_last", absl::StrCat("is ", checkpoints.keep_last(),
                                                         "; it must be from 1 to ", kMaxKeptCheckpoints));
  }
}

void CheckWeights(const v1::JobSpec& spec, FieldViolations& violations) {
  const v1::Training& training = spec.training();
  const double decay = training.weight_average().decay();
  if (training.has_weight_average() && !(decay >= 0 && decay < 1)) {
    violations.Add("training.weight_average.decay", absl::StrCat("is ", decay, "; it must be in [0, 1)"));
  }
  if (training.accumulation_steps() < 1) {
    violations.Add("training.accumulation_steps",
                   absl::StrCat("is ", training.accumulation_steps(), "; it must be at least 1"));
  }
}

void CheckTraining(const v1::JobSpec& spec, FieldViolations& violations) {
  const v1::Training& training = spec.training();
  violations.AddAll("training.loss", CheckLoss(training.loss()));
  violations.AddAll("training.optimizer", CheckOptimizer(training.optimizer()));
  CheckCount("training.global_batch_size", training.global_batch_size(), violations);
  // Each part is planned for itself.
  constexpr int64_t kMaxParts = 65536;
  if (training.accumulation_steps() > kMaxParts) {
    violations.Add("training.accumulation_steps",
                   absl::StrCat("is ", training.accumulation_steps(), "; it must be at most ", kMaxParts));
  }
  CheckLength(training, violations);
  violations.AddAll("training", CheckMetrics(training));
  violations.AddAll("training.schedule", CheckSchedule(training.schedule()));
  const v1::Metric watched = training.schedule().plateau().metric();
  const auto& metrics = training.metrics();
  if (watched == v1::METRIC_CONFUSION_MATRIX) {
    violations.Add("training.schedule.plateau.metric", "is no number; give another metric");
  } else if (watched != v1::METRIC_UNSPECIFIED &&
             std::find(metrics.begin(), metrics.end(), watched) == metrics.end()) {
    violations.Add("training.schedule.plateau.metric", "is not measured; give it in training.metrics too");
  }
  CheckReport(training.report(), violations);
  CheckValidation(training, violations);
  CheckEarlyStopping(training, violations);
  CheckBestModel(training, violations);
  CheckCheckpoints(spec.checkpoints(), violations);
  CheckWeights(spec, violations);
  CheckPrecision(training, violations);
  if (training.validation_batch_size() < 0 || training.validation_batch_size() > 2 * kMaxCount) {
    violations.Add("training.validation_batch_size", absl::StrCat("is ", training.validation_batch_size(),
                                                                  "; it must be from 1 to ", 2 * kMaxCount));
  }
}

// When it runs, and beside what.
void CheckScheduling(const v1::JobSpec& spec, FieldViolations& violations) {
  const auto check = [&](absl::string_view field, bool given, bool right, double value,
                         absl::string_view range) {
    if (given && !right) violations.Add(field, absl::StrCat("is ", value, "; it must be ", range));
  };
  check("time_limit_seconds", spec.has_time_limit_seconds(),
        spec.time_limit_seconds() > 0 && spec.time_limit_seconds() <= kMaxTimeLimitSeconds,
        spec.time_limit_seconds(), "above 0 and at most 31,536,000 (a year)");
  check("priority", true, std::abs(static_cast<int64_t>(spec.priority())) <= kMaxPriority, spec.priority(),
        "from -100 to 100");
  check("device_share", spec.has_device_share(), spec.device_share() > 0 && spec.device_share() <= 1,
        spec.device_share(), "above 0 and at most 1");
  if (spec.preemptible() && spec.checkpoints().off()) {
    violations.Add("preemptible",
                   "is asked for, but checkpoints.off keeps the job from going on where it was stopped");
  }
  check("max_restarts", true, spec.max_restarts() >= 0 && spec.max_restarts() <= kMaxRestarts,
        spec.max_restarts(), "from 0 to 100");
}

// What a job may take of GPUs.
void CheckGpuLimits(const v1::GpuOptions& gpu, FieldViolations& violations) {
  const auto check = [&](absl::string_view field, int64_t value, bool right, absl::string_view wanted) {
    if (value != 0 && !right)
      violations.Add(absl::StrCat("gpu.", field), absl::StrCat("is ", value, "; it must be ", wanted));
  };
  check("memory_limit_bytes", gpu.memory_limit_bytes(), gpu.memory_limit_bytes() > 0, "at least 1");
  check("workspace_limit_bytes", gpu.workspace_limit_bytes(), gpu.workspace_limit_bytes() > 0, "at least 1");
  const int threads = gpu.max_threads_per_block();
  check("max_threads_per_block", threads,
        threads == 128 || threads == 256 || threads == 512 || threads == 1024, "128, 256, 512 or 1024");
  check("max_blocks", gpu.max_blocks(), gpu.max_blocks() > 0, "at least 1");
}

// That nothing waits for a measure that training alone does not have.
void CheckWatchedInTraining(const v1::Training& training, FieldViolations& violations) {
  const v1::Metric plateau = training.schedule().plateau().metric();
  for (const int number : training.metrics()) {
    const auto metric = static_cast<v1::Metric>(number);
    if (IsMetered(metric)) continue;
    const std::string name = MetricName(metric, training);
    const auto check = [&](const char* field, bool watched) {
      if (!watched) return;
      violations.Add(field, absl::StrCat("is ", name,
                                         ", which is measured in validation alone, and there is none; "
                                         "give another metric, or dataset.validation_split"));
    };
    check("training.schedule.plateau.metric", plateau == metric);
    check("training.early_stopping.metric", training.early_stopping().metric() == name);
    check("training.best_model.metric", training.best_model().metric() == name);
  }
}

// `outputs` are the shapes of the layers' outputs, empty where the model is wrong.
void CheckAgainstData(const v1::JobSpec& spec, const std::vector<Shape>& outputs, const DatasetInfo& dataset,
                      FieldViolations& violations) {
  const v1::Model& model = spec.model();
  const Shape input(std::vector<int64_t>(model.input().shape().begin(), model.input().shape().end()));
  if (input.rank() > 0 && input != dataset.shape) {
    violations.Add(
        "model.input.shape",
        absl::StrCat("is ", input.ToString(), ", but the data set's samples are ", dataset.shape.ToString()));
  }
  FieldViolations types;
  CheckSampleType(model, dataset, types);
  violations.AddAll("model", types.ToStatus());
  if (const size_t replicas = LoadsOf(spec.replicas()).size();
      replicas > static_cast<size_t>(std::max<int64_t>(0, dataset.train_samples))) {
    violations.Add("replicas.count", absl::StrCat("is ", replicas, ", more than the ", dataset.train_samples,
                                                  " training samples"));
  }
  const v1::Training& training = spec.training();
  if (training.drop_last() && dataset.train_samples < training.global_batch_size()) {
    violations.Add("training.drop_last",
                   absl::StrCat("leaves nothing of the ", dataset.train_samples,
                                " training samples, fewer than the ", training.global_batch_size(),
                                " of a batch; use a smaller global_batch_size, or leave drop_last out"));
  }
  if (dataset.validation_samples == 0) CheckWatchedInTraining(training, violations);
  const Target target = TrainingTargetOf(dataset);
  const absl::Status fits = CheckLossTarget(training.loss(), target);
  violations.AddAll("training.loss", fits);
  if (outputs.empty() || !fits.ok()) return;
  violations.AddAll("training", CheckMetricTargets(training, ValidationTargetOf(dataset), outputs.back(),
                                                   dataset.validation_samples));
  const std::string fault = OutputFault(training.loss(), target, outputs.back());
  if (fault.empty()) return;
  const int last = model.layers_size() - 1;
  violations.Add(absl::StrCat("model.layers[", last, "]"),
                 absl::StrCat("the last layer, \"", model.layers(last).name(), "\", ", fault));
}

// Where samples are, and how steps are given to GPUs.
void CheckPlacement(const v1::GpuOptions& gpu, FieldViolations& violations) {
  if (!v1::GpuOptions::DataPlacement_IsValid(gpu.data())) {
    violations.Add("gpu.data", absl::StrCat("is ", static_cast<int>(gpu.data()), ", which is no placement"));
  }
  if (gpu.steps_per_launch() < 0 || gpu.steps_per_launch() > kMostStepsPerLaunch) {
    violations.Add("gpu.steps_per_launch", absl::StrCat("is ", gpu.steps_per_launch(),
                                                        "; it must be from 1 to ", kMostStepsPerLaunch));
  }
}

// That samples which must be on a GPU can be.
void CheckResident(const v1::JobSpec& spec, const DatasetInfo& dataset, FieldViolations& violations) {
  if (spec.replicas().device_kind() != v1::DEVICE_KIND_GPU ||
      spec.gpu().data() != v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY) {
    return;
  }
  if (const std::string why = WhyNotResident(spec, dataset); !why.empty()) {
    violations.Add("gpu.data", absl::StrCat("is DATA_PLACEMENT_GPU_MEMORY, but ", why, "; leave it out"));
  }
}

// All that needs no data. Returns the shapes of the layers' outputs, empty where the model is wrong.
std::vector<Shape> CheckFilled(const v1::JobSpec& spec, FieldViolations& violations) {
  if (const std::string why = WhyNoJobName(spec.name()); !why.empty()) violations.Add("name", why);
  absl::StatusOr<std::vector<Shape>> outputs = CheckModel(spec.model());
  violations.AddAll("model", outputs.status());
  if (outputs.ok()) {
    CheckInitialWeights(spec, violations);
    CheckFrozenLayers(spec, violations);
    CheckStatistics(spec, violations);
  }
  CheckTraining(spec, violations);
  CheckReplicas(spec, violations);
  CheckScheduling(spec, violations);
  CheckGpuLimits(spec.gpu(), violations);
  CheckPlacement(spec.gpu(), violations);
  return outputs.ok() ? *std::move(outputs) : std::vector<Shape>();
}

// Adds up what the graphs of one replica take.
class MemoryTally {
 public:
  // `most_workspace` is the most that a step may have.
  explicit MemoryTally(int64_t most_workspace) : most_workspace_(most_workspace) {}

  void Add(const Graph& graph) {
    const int64_t arena_bytes = PlanMemory(graph).arena_bytes;
    others_.activations += arena_bytes;
    others_.workspace += std::min(WorkspaceShareBytes(arena_bytes), most_workspace_);
    for (const ValueId id : graph.variables()) variables_[graph.value(id).name] = graph.value(id);
    for (const Node& node : graph.nodes()) ops_.insert(std::string(node.op->kind()));
  }

  // A loader's batches: those that it keeps ready and the one that is read, each as large as the largest.
  void AddBatches(int64_t batch_bytes, int prefetch) { others_.data += batch_bytes * (1 + prefetch); }

  int64_t variable_bytes() const {
    int64_t total = 0;
    for (const auto& [name, value] : variables_) total += DenseBytes(value);
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
  MemoryGroups others_;  // Of all but variables.
  std::map<std::string, Value> variables_;
  std::set<std::string> ops_;
};

// Of an executable, beside its share of kWorkspaceCapBytes.
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

// Samplers keep the order of an epoch, of the one before it and, for batches that are prepared ahead, of the
// next.
int64_t OrderBytes(const v1::JobSpec& spec, int64_t epochs, const DatasetInfo& dataset) {
  // Statistics are taken in the order of one more.
  if (WantsPopulationStatistics(spec)) ++epochs;
  const int64_t orders = spec.training().shuffle() ? std::min<int64_t>(3, epochs) : 1;
  return (orders * dataset.train_samples + dataset.validation_samples) *
         static_cast<int64_t>(sizeof(uint32_t));
}

// Once an epoch, where nothing is said.
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

// After the metrics' defaults.
void FillStoppingDefaults(v1::Training* training) {
  if (training->has_early_stopping()) FillEarlyStoppingDefaults(training->mutable_early_stopping());
  // The best is tracked in any case, but kept only where it is asked for.
  const bool asked = training->has_best_model();
  v1::BestModel* best = training->mutable_best_model();
  if (!best->has_keep_weights()) best->set_keep_weights(asked);
  v1::PlateauMode mode = best->mode();
  if (best->metric().empty() && training->has_early_stopping()) {
    best->set_metric(training->early_stopping().metric());
    if (mode == v1::PLATEAU_MODE_UNSPECIFIED) mode = training->early_stopping().mode();
  }
  FillMeasureDefaults(best->mutable_metric(), &mode);
  best->set_mode(mode);
}

// Sizes of the batches that a pass over `samples` has: the full one, then the last where it is shorter and
// not dropped.
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
  CheckFilled(spec, violations);
  return violations.ToStatus();
}

namespace {

// Of a job that was checked.
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
    int64_t samples_before = 0;  // Of the early part before; those of one size share an executable.
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
      plan.parameters = 0;
      for (const Parameter& parameter : step.parameters) plan.parameters += parameter.shape.elements();
    }
    batch_bytes = std::max(batch_bytes, share_bytes);
    // What takes the largest share may refuse the smallest, as batch normalisation does a single sample.
    for (const int64_t share : shares) {
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
  // Each worker has its own.
  plan.host_memory_bytes =
      spec.replicas().workers() *
      (dataset.memory_bytes + OrderBytes(spec, length.epochs, dataset) +
       Evaluator::HostBytes(training, ValidationTargetOf(dataset), dataset.validation_samples));
  // A copy of the variables, from which a checkpoint is written; of each replica's where they differ.
  const int64_t copies = steps_alone ? static_cast<int64_t>(loads.size()) : 1;
  if (!spec.checkpoints().off()) {
    plan.host_memory_bytes += copies * (tally.variable_bytes() - plan.resident_bytes);
  }
  // What is copied to a device is put together before.
  plan.host_memory_bytes += plan.resident_bytes;
  plan.ops = tally.ops();
  return plan;
}

}  // namespace

absl::StatusOr<JobPlan> PlanJob(const v1::JobSpec& job, const DatasetInfo& dataset) {
  v1::JobSpec spec = job;
  FillDefaults(&spec);
  FieldViolations violations;
  const std::vector<Shape> outputs = CheckFilled(spec, violations);
  CheckAgainstData(spec, outputs, dataset, violations);
  CheckResident(spec, dataset, violations);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());

  const bool resident = WantsResidentData(spec, dataset);
  TANDEM_ASSIGN_OR_RETURN(JobPlan plan, PlanChecked(spec, dataset, resident));
  const int64_t limit = spec.gpu().memory_limit_bytes();
  const bool must = spec.gpu().data() == v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY;
  if (!resident || must || limit <= 0 || plan.replica_memory_bytes <= limit) return plan;
  return PlanChecked(spec, dataset, /*resident=*/false);
}

}  // namespace tandem
