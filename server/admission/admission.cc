#include "server/admission/admission.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
#include "server/admission/remote_data.h"
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

absl::Status Invalid(const FieldViolations& violations) {
  return violations.empty() ? absl::OkStatus() : WithReason(violations.ToStatus(), "INVALID_SPEC");
}

}  // namespace

// A job on its way through the checks.
struct SpecAdmission::Request {
  const v1::JobSpec& wanted;  // As the client sent it.
  bool reads_weights;         // The job starts from initial_weights, and continues no other model.
  AdmittedJob job = {};
  absl::StatusOr<DatasetInfo> data = DatasetInfo();
  JobPlan plan = {};  // Empty until PlanTraining.
  FieldViolations violations = {};
};

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
  Request request{.wanted = spec, .reads_weights = names == nullptr && spec.has_initial_weights()};
  request.job.spec = spec;
  TANDEM_RETURN_IF_ERROR(ReadData(names, &request));
  TANDEM_RETURN_IF_ERROR(ExpandModel(&request));
  TANDEM_RETURN_IF_ERROR(FillReplicas(&request));
  FillDefaults(&request.job.spec);
  TANDEM_RETURN_IF_ERROR(MatchToWeights(&request));
  TANDEM_RETURN_IF_ERROR(PlanTraining(&request));
  TANDEM_RETURN_IF_ERROR(CheckWeights(&request));
  TANDEM_RETURN_IF_ERROR(Invalid(request.violations));
  TANDEM_RETURN_IF_ERROR(request.job.spec.has_cluster() ? FitCluster(&request) : FitDevices(&request));
  request.job.planned_operations = OperationsOf(request.job.spec, request.plan.steps);
  return std::move(request.job);
}

absl::Status SpecAdmission::ReadData(const DataNames* names, Request* request) const {
  request->data = DescribeData(request->wanted, names);
  const absl::Status& status = request->data.status();
  return absl::IsInvalidArgument(status) ? absl::OkStatus() : status;
}

absl::Status SpecAdmission::ExpandModel(Request* request) const {
  const absl::StatusOr<DatasetInfo>& data = request->data;
  const v1::Model& wanted = request->wanted.model();
  v1::Model* const model = request->job.spec.mutable_model();
  const TemplateData facts = data.ok() ? TemplateDataOf(*data) : CustomaryData(wanted.template_());
  const bool takes_columns = TakesCategoryColumns(wanted);
  if (takes_columns && request->reads_weights &&
      ExpandAsWeights(*weights_, request->wanted.initial_weights(), facts, model)) {
    return absl::OkStatus();
  }
  // Columns that are unknown because of the data's error are no second error.
  const bool is_unknown = takes_columns && !data.ok();
  const absl::Status expanded = is_unknown ? absl::OkStatus() : ExpandTemplate(facts, model);
  if (!is_unknown && expanded.ok()) return absl::OkStatus();
  // Without layers, nothing else can be checked.
  request->violations.AddAll("spec.dataset", data.status());
  request->violations.AddAll("spec.model", expanded);
  return Invalid(request->violations);
}

absl::Status SpecAdmission::FillReplicas(Request* request) const {
  v1::JobSpec* const spec = &request->job.spec;
  if (!spec->has_cluster()) {
    request->violations.AddAll("spec.replicas", devices_.ResolveAll(spec->mutable_replicas()));
    return absl::OkStatus();
  }
  request->violations.AddAll("spec", FillCluster(cluster_, spec));
  // Other messages would follow from these.
  return Invalid(request->violations);
}

absl::Status SpecAdmission::MatchToWeights(Request* request) const {
  v1::JobSpec* const spec = &request->job.spec;
  if (!request->reads_weights || !CheckModel(spec->model()).ok()) return absl::OkStatus();
  const absl::StatusOr<ModelFile> file = weights_->Find(spec->initial_weights());
  const absl::StatusOr<DataNames> known =
      file.ok() ? NamesOfInitialWeights(*spec, file->path) : file.status();
  // CheckWeights reports an error of the file.
  const bool is_matched = known.ok() && (known->matches_inputs || known->matches_outputs);
  if (is_matched) TANDEM_RETURN_IF_ERROR(ReadData(&*known, request));
  const v1::Model& wanted = request->wanted.model();
  const bool changes_model = TakesCategoryColumns(wanted) || (is_matched && wanted.has_template_());
  if (!request->data.ok() || !changes_model) return absl::OkStatus();
  *spec->mutable_model() = wanted;
  const absl::Status expanded = ExpandTemplate(TemplateDataOf(*request->data), spec->mutable_model());
  if (!expanded.ok()) {
    request->violations.AddAll("spec.model", expanded);
    return Invalid(request->violations);
  }
  FillDefaults(spec);
  return absl::OkStatus();
}

absl::Status SpecAdmission::PlanTraining(Request* request) const {
  v1::JobSpec* const spec = &request->job.spec;
  request->violations.AddAll("spec.dataset", request->data.status());
  request->violations.AddAll("spec.gpu", devices_.FillGpuLimits(spec));
  // The samples' place, and so the plan, depends on the device kind.
  spec->mutable_replicas()->set_device_kind(devices_.KindFor(spec->replicas()));
  absl::Status planned;
  if (request->data.ok()) {
    absl::StatusOr<JobPlan> plan = Plan(*spec, *request->data);
    planned = plan.status();
    if (plan.ok()) request->plan = *std::move(plan);
  } else {
    // The data's error ends the admission without a plan.
    planned = CheckJob(*spec);
  }
  const std::vector<FieldViolation> found = GetFieldViolations(planned);
  if (!planned.ok() && found.empty()) return planned;
  for (const FieldViolation& violation : found) {
    request->violations.Add(absl::StrCat("spec.", violation.field), violation.description);
  }
  return absl::OkStatus();
}

absl::Status SpecAdmission::CheckWeights(Request* request) const {
  const v1::JobSpec& spec = request->job.spec;
  if (!request->violations.empty() || !spec.has_initial_weights()) return absl::OkStatus();
  const absl::StatusOr<ModelFile> file = weights_->Find(spec.initial_weights());
  const absl::Status fits = file.ok() ? CheckWeightsFile(spec, file->path) : file.status();
  if (!fits.ok() && !absl::IsInvalidArgument(fits)) return fits;
  const std::string& named = spec.initial_weights().file();
  if (!file.ok() || !IsUrl(named)) {
    request->violations.AddAll("spec", fits);
    return absl::OkStatus();
  }
  // The user knows the URL, and not the file's place in the cache.
  for (const FieldViolation& violation : GetFieldViolations(fits)) {
    request->violations.Add(absl::StrCat("spec.", violation.field),
                            absl::StrReplaceAll(violation.description, {{file->path, ShownUrl(named)}}));
  }
  return absl::OkStatus();
}

absl::Status SpecAdmission::FitCluster(Request* request) const {
  const v1::JobSpec& spec = request->job.spec;
  TANDEM_RETURN_IF_ERROR(DeviceCheck::CheckOps(request->plan, spec.replicas().device_kind()));
  const absl::Status taken = cluster_.test ? cluster_.test(spec) : absl::OkStatus();
  if (!taken.ok() && !absl::IsInvalidArgument(taken)) return taken;
  request->violations.AddAll(absl::StrCat("spec.", ClusterField(spec.cluster())), taken);
  request->job.planned_memory_bytes = request->plan.replica_memory_bytes;
  return Invalid(request->violations);
}

absl::Status SpecAdmission::FitDevices(Request* request) const {
  v1::JobSpec* const spec = &request->job.spec;
  absl::StatusOr<int64_t> memory_bytes = devices_.Check(request->plan, spec);
  if (!memory_bytes.ok() && request->plan.resident_bytes > 0 &&
      spec->gpu().data() == v1::GpuOptions::DATA_PLACEMENT_UNSPECIFIED) {
    // The job does not fit with its samples on the GPU.
    spec->mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY);
    TANDEM_ASSIGN_OR_RETURN(request->plan, Plan(*spec, *request->data));
    memory_bytes = devices_.Check(request->plan, spec);
  }
  TANDEM_RETURN_IF_ERROR(memory_bytes.status());
  request->job.planned_memory_bytes = *memory_bytes;
  return absl::OkStatus();
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
