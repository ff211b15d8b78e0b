#include "engine/training/job_checks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/table/cell.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/metrics/metric.h"
#include "engine/optimizers/optimizer.h"
#include "engine/schedules/schedule.h"
#include "engine/training/early_stopping.h"
#include "engine/training/initial_weights.h"
#include "engine/training/job_name.h"
#include "engine/training/layer_selection.h"
#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"
#include "engine/training/resident_data.h"
#include "engine/training/step_graph.h"
#include "engine/training/targets.h"
#include "engine/training/watched_measure.h"
#include "tandem/v1/model.pb.h"

namespace tandem {
namespace {

constexpr int kMaxPriority = 100;
constexpr int kMaxKeptCheckpoints = 100;
constexpr int kMaxRestarts = 100;
constexpr double kMaxTimeLimitSeconds = 365.0 * 24 * 3600;
constexpr double kMinReportSeconds = 0.05;
// The most wrong columns in an error. More would say the same.
constexpr int kMostColumnFaults = 3;

// Checks that a required count is in [1, kMaxCount].
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
    violations.Add("training.loss_scaling", "is for the precision float16 alone; leave it out");
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

// Checks that an interval is present and consists of whole numbers from 1.
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
  if (!training.has_best_model()) return;
  const v1::BestModel& best = training.best_model();
  // Otherwise the measure is early_stopping's or the loss, and reported there.
  if (!best.metric().empty() || best.mode() != v1::PLATEAU_MODE_UNSPECIFIED) {
    CheckMeasure(training, "training.best_model", BestMeasure(training).name, best.mode(), violations);
  }
  if (best.export_best() && !best.keep_weights()) {
    violations.Add("training.best_model.export_best", "needs keep_weights, which is false");
  }
}

// Checks batch_norm_statistics. The job's model is right.
void CheckStatistics(const v1::JobSpec& spec, FieldViolations& violations) {
  constexpr char kField[] = "training.batch_norm_statistics";
  const v1::BatchNormStatistics statistics = spec.training().batch_norm_statistics();
  if (!v1::BatchNormStatistics_IsValid(statistics)) {
    violations.Add(kField, absl::StrCat("is ", static_cast<int>(statistics), ", which is no such choice"));
  }
  if (!WantsPopulationStatistics(spec)) return;
  const absl::StatusOr<LayerTable> table = ListLayers(spec.model());
  if (!table.ok()) return;  // The plan reports the error.
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
  // Each part is planned separately.
  constexpr int64_t kMaxParts = 65536;
  if (training.accumulation_steps() > kMaxParts) {
    violations.Add("training.accumulation_steps",
                   absl::StrCat("is ", training.accumulation_steps(), "; it must be at most ", kMaxParts));
  }
  if (training.balance_samples() && !training.shuffle()) {
    violations.Add("training.balance_samples", "needs shuffled samples; leave shuffle: false out");
  }
  if (training.balance_samples() && training.loss().softmax_cross_entropy().balance_classes()) {
    violations.Add(
        "training.balance_samples",
        "is given together with the loss's balance_classes, which would balance the classes twice; "
        "leave one of them out");
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

// Checks when the job runs, and beside which jobs.
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

// Checks the job's limits on GPUs.
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

// Checks that no setting waits for a measure that a training without validation lacks.
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
    check("training.best_model.metric", training.has_best_model() && BestMeasure(training).name == name);
  }
}

// Checks the place of the samples, and the number of steps for each launch.
void CheckPlacement(const v1::GpuOptions& gpu, FieldViolations& violations) {
  if (!v1::GpuOptions::DataPlacement_IsValid(gpu.data())) {
    violations.Add("gpu.data", absl::StrCat("is ", static_cast<int>(gpu.data()), ", which is no placement"));
  }
  if (gpu.steps_per_launch() < 0 || gpu.steps_per_launch() > kMostStepsPerLaunch) {
    violations.Add("gpu.steps_per_launch", absl::StrCat("is ", gpu.steps_per_launch(),
                                                        "; it must be from 1 to ", kMostStepsPerLaunch));
  }
}

// Checks that samples which must be on a GPU can be there.
void CheckResident(const v1::JobSpec& spec, const DatasetInfo& dataset, FieldViolations& violations) {
  if (spec.replicas().device_kind() != v1::DEVICE_KIND_GPU ||
      spec.gpu().data() != v1::GpuOptions::DATA_PLACEMENT_GPU_MEMORY) {
    return;
  }
  if (const std::string why = WhyNotResident(spec, dataset); !why.empty()) {
    violations.Add("gpu.data", absl::StrCat("is DATA_PLACEMENT_GPU_MEMORY, but ", why, "; leave it out"));
  }
}

// Checks that a model accepts the data set's samples. Tokens need an embedding with a vector for each token.
// Numbers need other layers. `model` has its defaults. Fields are relative to the Model.
void CheckSampleType(const v1::Model& model, const DatasetInfo& dataset, FieldViolations& violations) {
  const bool tokens = dataset.sample_type == SampleType::kTokens;
  if (tokens && !ReadsTokens(model) && !model.layers().empty()) {
    violations.Add("layers[0]",
                   absl::StrCat("layer \"", model.layers(0).name(),
                                "\" reads numbers, but the data set's samples are tokens; put an "
                                "embedding with a vocabulary_size of ",
                                dataset.classes, " before it"));
  }
  for (int i = 0; i < model.layers_size(); ++i) {
    const v1::Layer& layer = model.layers(i);
    if (!layer.has_embedding()) continue;
    if (!tokens) {
      violations.Add(
          absl::StrCat("layers[", i, "]"),
          absl::StrCat("layer \"", layer.name(), "\" reads tokens, but the data set's samples are ",
                       dataset.shape.ToString(), " numbers; remove it, or give a text"));
    } else if (layer.embedding().vocabulary_size() < dataset.classes) {
      violations.Add(absl::StrCat("layers[", i, "].embedding.vocabulary_size"),
                     absl::StrCat("is ", layer.embedding().vocabulary_size(), ", less than the ",
                                  dataset.classes, " tokens of the data set"));
    }
  }
}

// Checks that a first layer embed_categories has columns of the data set. Fields are relative to the Model.
void CheckCategoryColumns(const v1::Model& model, const DatasetInfo& dataset, FieldViolations& violations) {
  if (model.layers().empty()) return;
  const auto& columns = model.layers(0).embed_categories().columns();
  const std::vector<v1::EmbeddedColumn>& there = dataset.category_columns;
  int faults = 0;
  for (int i = 0; i < columns.size() && faults < kMostColumnFaults; ++i) {
    const v1::EmbeddedColumn& column = columns[i];
    const auto has_name = [&](const v1::EmbeddedColumn& other) { return other.name() == column.name(); };
    const bool fits = std::any_of(there.begin(), there.end(), [&](const v1::EmbeddedColumn& other) {
      return has_name(other) && other.first_input() == column.first_input() &&
             other.inputs() == column.inputs();
    });
    if (fits) continue;
    ++faults;
    const auto found = std::find_if(there.begin(), there.end(), has_name);
    violations.Add(
        absl::StrCat("layers[0].embed_categories.columns[", i, "]"),
        absl::StrCat("is ", QuotedCell(column.name()), " with ", column.inputs(), " inputs from input ",
                     column.first_input(), ", but ",
                     found == there.end() ? "the data set has no column of categories with this name"
                                          : absl::StrCat("the data set's column has ", found->inputs(),
                                                         " inputs from input ", found->first_input()),
                     "; leave columns out, so that the data set gives them"));
  }
}

}  // namespace

std::vector<Shape> CheckFilledJob(const v1::JobSpec& spec, FieldViolations& violations) {
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

void CheckJobAgainstData(const v1::JobSpec& spec, const std::vector<Shape>& outputs,
                         const DatasetInfo& dataset, FieldViolations& violations) {
  CheckResident(spec, dataset, violations);
  const v1::Model& model = spec.model();
  const Shape input = InputShapeOf(model);
  if (input.rank() > 0 && input != dataset.shape) {
    violations.Add(
        "model.input.shape",
        absl::StrCat("is ", input.ToString(), ", but the data set's samples are ", dataset.shape.ToString()));
  }
  FieldViolations types;
  CheckSampleType(model, dataset, types);
  CheckCategoryColumns(model, dataset, types);
  violations.AddAll("model", types.ToStatus());
  if (const size_t replicas = LoadsOf(spec.replicas()).size();
      replicas > static_cast<size_t>(std::max<int64_t>(0, dataset.train_samples))) {
    violations.Add("replicas.count", absl::StrCat("is ", replicas, ", more than the ", dataset.train_samples,
                                                  " training samples"));
  }
  const bool has_classes =
      dataset.target_type == TargetKind::kClass || dataset.target_type == TargetKind::kTokens;
  if (has_classes && (dataset.classes == 1 || (dataset.one_label && dataset.train_samples > 1))) {
    const bool named = dataset.classes == 1 && !dataset.class_names.empty();
    violations.Add("dataset",
                   absl::StrCat("has training samples of one ",
                                dataset.target_type == TargetKind::kTokens ? "token" : "class",
                                named ? absl::StrCat(", ", ListNames(dataset.class_names)) : " alone",
                                ", so that there is nothing to learn; ",
                                dataset.one_class_mend.empty() ? "give samples of at least two classes"
                                                               : dataset.one_class_mend));
  }
  const v1::Training& training = spec.training();
  if (training.drop_last() && dataset.train_samples < training.global_batch_size()) {
    violations.Add("training.drop_last",
                   absl::StrCat("leaves nothing of the ", dataset.train_samples,
                                " training samples, fewer than the ", training.global_batch_size(),
                                " of a batch; use a smaller global_batch_size, or leave drop_last out"));
  }
  if (training.balance_samples() && dataset.target_type != TargetKind::kClass) {
    violations.Add("training.balance_samples",
                   absl::StrCat("needs a class for each sample, but the data set's targets are ",
                                ToString(dataset.target_type), "; leave it out"));
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

}  // namespace tandem
