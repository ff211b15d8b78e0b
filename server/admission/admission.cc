#include "server/admission/admission.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/data/table/table_encoder.h"
#include "engine/layers/model.h"
#include "engine/layers/model_template.h"
#include "engine/training/checkpoint_fit.h"
#include "engine/training/fit_data.h"
#include "engine/training/initial_weights.h"
#include "engine/training/model_description.h"
#include "engine/training/model_file.h"
#include "engine/training/trained_model.h"
#include "server/admission/plan_key.h"
#include "server/admission/template_data.h"

namespace tandem {
namespace {

// Returns true if a field of DatasetSpec is a source.
bool IsSource(absl::string_view field) {
  const google::protobuf::OneofDescriptor* const sources =
      v1::DatasetSpec::descriptor()->FindOneofByName("source");
  for (int i = 0; i < sources->field_count(); ++i) {
    if (sources->field(i)->name() == field) return true;
  }
  return false;
}

// Moves violations of the source's fields to "name": a client that named the data set gave no files.
absl::Status BlameName(const absl::Status& status, const std::string& name) {
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    const size_t dot = violation.field.find('.');
    if (dot != std::string::npos && IsSource(absl::string_view(violation.field).substr(0, dot))) {
      violations.Add("name", absl::StrCat("is '", name, "', of which ", violation.field.substr(dot + 1), ": ",
                                          violation.description));
    } else {
      violations.Add(violation.field, violation.description);
    }
  }
  return violations.empty() ? status : violations.ToStatus();
}

// Expands `model`, which takes its columns of categories from the data, with the columns of the table that
// the weights `source` were trained on. The model's layers then have the names of the weights' layers.
// Returns whether there are such columns. If not, `model` is unchanged.
bool ExpandAsWeights(const WeightsFinder& finder, const v1::InitialWeights& source, TemplateData data,
                     v1::Model* model) {
  const absl::StatusOr<ModelFile> file = finder.Find(source);
  if (!file.ok()) return false;
  const auto preparation = PreparationInWeights(file->path);
  if (!preparation.ok() || !preparation->has_value()) return false;
  data.sample = Shape({TableEncoder(**preparation).inputs()});
  data.category_columns = CategoryColumnsOf(**preparation);
  return ExpandTemplate(data, model).ok();
}

}  // namespace

SpecAdmission::SpecAdmission(const DatasetCatalog* catalog, const WeightsFinder* weights,
                             std::vector<v1::Device> devices, std::vector<v1::DeviceKind> priority,
                             GpuLimits gpu_limits, ClusterRules cluster)
    : catalog_(catalog),
      weights_(weights),
      devices_(std::move(devices), std::move(priority), gpu_limits),
      cluster_(std::move(cluster)) {}

absl::StatusOr<DatasetInfo> SpecAdmission::DescribeData(const v1::JobSpec& spec,
                                                        const DataNames* names) const {
  if (!spec.has_dataset()) return absl::InvalidArgumentError("is required; name the data set to train on");
  const absl::StatusOr<v1::DatasetSpec> resolved = catalog_->Resolve(spec.dataset());
  absl::StatusOr<DatasetInfo> data =
      resolved.ok() ? catalog_->Describe(FitData(spec, *resolved), names) : resolved.status();
  if (data.ok()) {
    const absl::Status choices = CheckDataChoices(spec, *resolved);
    if (!choices.ok()) data = choices;
  }
  if (data.ok() || spec.dataset().name().empty()) return data;
  return BlameName(data.status(), spec.dataset().name());
}

absl::StatusOr<AdmittedJob> SpecAdmission::AdmitJob(const v1::JobSpec& spec, const DataNames* names) const {
  AdmittedJob job;
  job.spec = spec;
  FieldViolations violations;
  absl::StatusOr<DatasetInfo> data = DescribeData(spec, names);
  if (!data.ok() && spec.has_dataset() && !absl::IsInvalidArgument(data.status())) return data.status();
  const TemplateData facts = data.ok() ? TemplateDataOf(*data) : CustomaryData(spec.model().template_());
  const bool reads_weights = names == nullptr && spec.has_initial_weights();
  const bool takes_columns = TakesCategoryColumns(spec.model());
  const bool is_expanded =
      takes_columns && reads_weights &&
      ExpandAsWeights(*weights_, spec.initial_weights(), facts, job.spec.mutable_model());
  // Columns that are unknown because of the data's error are no second error.
  const bool is_unknown = takes_columns && !is_expanded && !data.ok();
  absl::Status expanded;
  if (!is_expanded && !is_unknown) expanded = ExpandTemplate(facts, job.spec.mutable_model());
  // Without layers, nothing else can be checked.
  if (is_unknown || !expanded.ok()) {
    violations.AddAll("spec.dataset", data.status());
    violations.AddAll("spec.model", expanded);
    return WithReason(violations.ToStatus(), "INVALID_SPEC");
  }
  const bool is_on_cluster = job.spec.has_cluster();
  if (is_on_cluster) {
    violations.AddAll("spec", FillCluster(cluster_, &job.spec));
    // Other messages would follow from these.
    if (!violations.empty()) return WithReason(violations.ToStatus(), "INVALID_SPEC");
  } else {
    violations.AddAll("spec.replicas", devices_.ResolveAll(job.spec.mutable_replicas()));
  }
  FillDefaults(&job.spec);
  // Reading the data may need the model's names: the model knows the target's column.
  if (reads_weights && CheckModel(job.spec.model()).ok()) {
    const absl::StatusOr<ModelFile> file = weights_->Find(job.spec.initial_weights());
    const absl::StatusOr<DataNames> known =
        file.ok() ? NamesOfInitialWeights(job.spec, file->path) : file.status();
    // An error of the file is reported below.
    const bool is_matched = known.ok() && (known->matches_inputs || known->matches_outputs);
    if (is_matched) {
      data = DescribeData(spec, &*known);
      if (!data.ok() && !absl::IsInvalidArgument(data.status())) return data.status();
    }
    // If the model knows the data's classes, the template gets the model's outputs. Columns are those of the
    // data, matched or not.
    if (data.ok() && (takes_columns || (is_matched && spec.model().has_template_()))) {
      *job.spec.mutable_model() = spec.model();
      expanded = ExpandTemplate(TemplateDataOf(*data), job.spec.mutable_model());
      if (!expanded.ok()) {
        violations.AddAll("spec.model", expanded);
        return WithReason(violations.ToStatus(), "INVALID_SPEC");
      }
      FillDefaults(&job.spec);
    }
  }
  violations.AddAll("spec.dataset", data.status());
  violations.AddAll("spec.gpu", devices_.FillGpuLimits(&job.spec));
  // The samples' place, and so the plan, depends on the device kind.
  job.spec.mutable_replicas()->set_device_kind(devices_.KindFor(job.spec.replicas()));
  absl::StatusOr<JobPlan> plan;
  if (data.ok()) {
    plan = Plan(job.spec, *data);
  } else if (const absl::Status alone = CheckJob(job.spec); !alone.ok()) {
    plan = alone;
  } else {
    // The data's error ends the admission below.
    plan = JobPlan();
  }
  const std::vector<FieldViolation> found = GetFieldViolations(plan.status());
  if (!plan.ok() && found.empty()) return plan.status();
  for (const FieldViolation& violation : found) {
    violations.Add(absl::StrCat("spec.", violation.field), violation.description);
  }
  if (violations.empty() && job.spec.has_initial_weights()) {
    const absl::StatusOr<ModelFile> file = weights_->Find(job.spec.initial_weights());
    const absl::Status fits = file.ok() ? CheckWeightsFile(job.spec, file->path) : file.status();
    if (!fits.ok() && !absl::IsInvalidArgument(fits)) return fits;
    violations.AddAll("spec", fits);
  }
  if (!violations.empty()) return WithReason(violations.ToStatus(), "INVALID_SPEC");
  if (is_on_cluster) {
    TANDEM_RETURN_IF_ERROR(DeviceCheck::CheckOps(*plan, job.spec.replicas().device_kind()));
    const absl::Status taken = cluster_.test ? cluster_.test(job.spec) : absl::OkStatus();
    if (!taken.ok() && !absl::IsInvalidArgument(taken)) return taken;
    violations.AddAll("spec.cluster.slurm", taken);
    if (!violations.empty()) return WithReason(violations.ToStatus(), "INVALID_SPEC");
    job.planned_memory_bytes = plan->replica_memory_bytes;
    job.planned_operations = OperationsOf(job.spec, plan->steps);
    return job;
  }
  absl::StatusOr<int64_t> memory_bytes = devices_.Check(*plan, &job.spec);
  if (!memory_bytes.ok() && plan->resident_bytes > 0 &&
      job.spec.gpu().data() == v1::GpuOptions::DATA_PLACEMENT_UNSPECIFIED) {
    // The job does not fit with its samples on the GPU.
    job.spec.mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY);
    TANDEM_ASSIGN_OR_RETURN(const JobPlan on_host, Plan(job.spec, *data));
    memory_bytes = devices_.Check(on_host, &job.spec);
  }
  TANDEM_RETURN_IF_ERROR(memory_bytes.status());
  job.planned_memory_bytes = *memory_bytes;
  job.planned_operations = OperationsOf(job.spec, plan->steps);
  return job;
}

absl::StatusOr<JobPlan> SpecAdmission::Plan(const v1::JobSpec& spec, const DatasetInfo& data) const {
  TANDEM_ASSIGN_OR_RETURN(const std::string key, Sha256Of(PlanKey(spec, data)));
  if (std::optional<JobPlan> known = plans_.Find(key); known.has_value()) {
    // Checks the fields that the key leaves out.
    TANDEM_RETURN_IF_ERROR(CheckJob(spec));
    return *std::move(known);
  }
  absl::StatusOr<JobPlan> plan = PlanJob(spec, data);
  if (plan.ok()) plans_.Add(key, *plan);
  return plan;
}

double SpecAdmission::OperationsOf(const v1::JobSpec& spec, int64_t steps) const {
  // A backward pass costs about two forward passes.
  constexpr double kPasses = 3;
  const absl::StatusOr<std::string> key = Sha256Of(spec.model().SerializeAsString());
  if (!key.ok()) return 0;
  std::optional<double> operations = operations_.Find(*key);
  if (!operations.has_value()) {
    const absl::StatusOr<v1::ModelDescription> model = DescribeModel(spec.model(), /*batch_size=*/1);
    operations = model.ok() ? static_cast<double>(model->operations()) : 0;
    operations_.Add(*key, *operations);
  }
  return kPasses * *operations * static_cast<double>(steps) *
         static_cast<double>(spec.training().global_batch_size());
}

absl::Status SpecAdmission::CheckCheckpoint(const AdmittedJob& job,
                                            const SafetensorsHeader& checkpoint) const {
  TANDEM_ASSIGN_OR_RETURN(const v1::DatasetSpec resolved, catalog_->Resolve(job.spec.dataset()));
  TANDEM_ASSIGN_OR_RETURN(const TrainingState state, StateOfCheckpoint(checkpoint));
  TANDEM_ASSIGN_OR_RETURN(const DataNames names, NamesInModel(state.model));
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo data, catalog_->Describe(FitData(job.spec, resolved), &names));
  absl::Status fits = CheckCheckpointFits(job.spec, data, checkpoint);
  if (fits.ok()) fits = CheckSomethingIsLeft(job.spec, data, state);
  if (fits.ok() || !absl::IsInvalidArgument(fits)) return fits;
  FieldViolations violations;
  violations.AddAll("spec", fits);
  const std::string reason = GetReason(fits);
  return WithReason(violations.ToStatus(), reason.empty() ? "INVALID_SPEC" : reason);
}

}  // namespace tandem
