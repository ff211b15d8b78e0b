#include "server/admission/admission.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/backend/op_table.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/layers/model.h"
#include "engine/layers/model_template.h"
#include "engine/training/initial_weights.h"
#include "engine/training/model_description.h"
#include "server/admission/template_data.h"

namespace tandem {
namespace {

// Whether a field of DatasetSpec is one of its sources.
bool IsSource(absl::string_view field) {
  const google::protobuf::OneofDescriptor* const sources =
      v1::DatasetSpec::descriptor()->FindOneofByName("source");
  for (int i = 0; i < sources->field_count(); ++i) {
    if (sources->field(i)->name() == field) return true;
  }
  return false;
}

// Who named a data set gave no files: what is wrong with them is wrong with the name.
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

bool TakesValues(const v1::Loss& loss) {
  return loss.has_mse() || loss.has_l1() || loss.has_huber() || loss.has_smooth_l1() ||
         loss.has_binary_cross_entropy_with_logits() || loss.has_kl_divergence() ||
         loss.has_cosine_embedding();
}

// A stand-in for data that could not be described, so that what is wrong with the rest is found all the same:
// data that fits the network's input, the output of its last dense layer, and the loss.
DatasetInfo FittingData(const v1::JobSpec& spec) {
  const v1::Model& model = spec.model();
  DatasetInfo info;
  info.shape = Shape(std::vector<int64_t>(model.input().shape().begin(), model.input().shape().end()));
  info.classes = 2;
  for (const v1::Layer& layer : model.layers()) {
    if (layer.dense().units() > 0) info.classes = layer.dense().units();
  }
  if (ReadsTokens(model)) {
    info.sample_type = SampleType::kTokens;
    info.target_type = TargetType::kTokens;
    info.target_shape = info.shape;
    info.classes = 1;
  }
  if (TakesValues(spec.training().loss())) {
    info.target_type = TargetType::kValues;
    info.target_shape = Shape({info.classes});
    info.classes = 0;
  }
  info.validation_samples = 1;
  info.train_samples =
      std::max({int64_t{1}, spec.training().global_batch_size(), int64_t{spec.replicas().count()}});
  return info;
}

absl::string_view KindName(v1::DeviceKind kind) {
  switch (kind) {
    case v1::DEVICE_KIND_GPU:
      return "GPU";
    case v1::DEVICE_KIND_REFERENCE:
      return "reference";
    default:
      return "CPU";
  }
}

BackendKind BackendOf(v1::DeviceKind kind) {
  return kind == v1::DEVICE_KIND_REFERENCE ? BackendKind::kReference : BackendKind::kCpu;
}

// Of `steps` optimizer steps; 0 where nobody knows.
double OperationsOf(const v1::JobSpec& spec, int64_t steps) {
  // A backward pass takes about twice what the forward pass does.
  constexpr double kPasses = 3;
  const absl::StatusOr<v1::ModelDescription> model = DescribeModel(spec.model(), /*batch_size=*/1);
  if (!model.ok()) return 0;
  return kPasses * static_cast<double>(model->operations()) * static_cast<double>(steps) *
         static_cast<double>(spec.training().global_batch_size());
}

}  // namespace

SpecAdmission::SpecAdmission(const DatasetCatalog* catalog, const WeightsFinder* weights,
                             std::vector<v1::Device> devices)
    : catalog_(catalog), weights_(weights), devices_(std::move(devices)) {}

absl::StatusOr<AdmittedJob> SpecAdmission::Admit(const v1::JobSpec& spec) const {
  AdmittedJob job;
  job.spec = spec;
  FieldViolations violations;
  absl::StatusOr<DatasetInfo> data = absl::InvalidArgumentError("is required: what to train on");
  if (spec.has_dataset()) {
    const absl::StatusOr<v1::DatasetSpec> resolved = catalog_->Resolve(spec.dataset());
    data = resolved.ok() ? catalog_->Describe(*resolved) : resolved.status();
    if (!data.ok() && !spec.dataset().name().empty()) data = BlameName(data.status(), spec.dataset().name());
  }
  if (!data.ok() && spec.has_dataset() && !absl::IsInvalidArgument(data.status())) return data.status();
  violations.AddAll("spec.dataset", data.status());
  const absl::Status expanded = ExpandTemplate(
      data.ok() ? TemplateDataOf(*data) : CustomaryData(spec.model().template_()), job.spec.mutable_model());
  violations.AddAll("spec.model", expanded);
  // Without its layers there is nothing to say of the rest.
  if (!expanded.ok()) return WithReason(violations.ToStatus(), "INVALID_SPEC");
  FillDefaults(&job.spec);
  const absl::StatusOr<JobPlan> plan = PlanJob(job.spec, data.ok() ? *data : FittingData(job.spec));
  const std::vector<FieldViolation> found = GetFieldViolations(plan.status());
  if (!plan.ok() && found.empty()) return plan.status();
  // Without data nobody knows whether the network's output fits it.
  const std::string output = absl::StrCat("model.layers[", job.spec.model().layers_size() - 1, "]");
  for (const FieldViolation& violation : found) {
    if (!data.ok() && violation.field == output) continue;
    violations.Add(absl::StrCat("spec.", violation.field), violation.description);
  }
  if (violations.empty() && job.spec.has_initial_weights()) {
    const absl::StatusOr<std::string> path = weights_->Find(job.spec.initial_weights());
    const absl::Status fits = path.ok() ? CheckWeightsFile(job.spec, *path) : path.status();
    if (!fits.ok() && !absl::IsInvalidArgument(fits)) return fits;
    violations.AddAll("spec", fits);
  }
  if (!violations.empty()) return WithReason(violations.ToStatus(), "INVALID_SPEC");
  TANDEM_ASSIGN_OR_RETURN(job.planned_memory_bytes, CheckDevices(job.spec, *plan));
  job.planned_operations = OperationsOf(job.spec, plan->steps);
  return job;
}

absl::StatusOr<int64_t> SpecAdmission::CheckDevices(const v1::JobSpec& spec, const JobPlan& plan) const {
  const int wanted = std::max(1, spec.replicas().count());
  const auto count = [&](v1::DeviceKind kind) {
    return std::count_if(devices_.begin(), devices_.end(),
                         [&](const v1::Device& device) { return device.kind() == kind; });
  };
  v1::DeviceKind kind = spec.replicas().device_kind();
  if (kind == v1::DEVICE_KIND_UNSPECIFIED) {
    // As the placement does.
    kind = count(v1::DEVICE_KIND_GPU) >= wanted ? v1::DEVICE_KIND_GPU : v1::DEVICE_KIND_CPU;
  }
  const int available = static_cast<int>(count(kind));
  if (wanted > available) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrFormat(
            "spec.replicas.count: asks for %d replica%s on %s devices, of which this daemon has %d: the job "
            "could never run. Ask for at most %d, another device_kind, or start the daemon with more devices",
            wanted, wanted == 1 ? "" : "s", KindName(kind), available, available)),
        "TOO_FEW_DEVICES");
  }
  for (const std::string& op : plan.ops) {
    if (OffersOp(BackendOf(kind), op)) continue;
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "spec.replicas.device_kind: ", KindName(kind), " devices do not offer the op '", op,
            "', which this network needs: the job could never run. Ask for another device_kind")),
        "OP_NOT_OFFERED");
  }
  TANDEM_RETURN_IF_ERROR(CheckPrecision(spec.training().precision(), kind));
  int64_t memory_bytes = plan.replica_memory_bytes;
  // Devices of these kinds are shares of the host's memory, so each gives its part to what the job has there.
  if (kind != v1::DEVICE_KIND_GPU) memory_bytes += (plan.host_memory_bytes + wanted - 1) / wanted;
  int64_t largest = 0;
  int fitting = 0;
  for (const v1::Device& device : devices_) {
    if (device.kind() != kind) continue;
    largest = std::max(largest, device.memory_bytes());
    if (device.memory_bytes() >= memory_bytes) ++fitting;
  }
  if (fitting < wanted) {
    return WithReason(absl::FailedPreconditionError(absl::StrFormat(
                          "spec: each of %d replica%s needs %.1f MiB of memory, and %d of "
                          "the daemon's %s devices ha%s that much (the "
                          "largest has %.1f MiB): the job could never run. Use a smaller "
                          "global_batch_size, more replicas, a smaller "
                          "network or data set, or start the daemon with more memory a device",
                          wanted, wanted == 1 ? "" : "s", memory_bytes / 1048576.0, fitting, KindName(kind),
                          fitting == 1 ? "s" : "ve", largest / 1048576.0)),
                      "TOO_LITTLE_MEMORY");
  }
  return memory_bytes;
}

absl::Status SpecAdmission::CheckPrecision(v1::Precision precision, v1::DeviceKind kind) const {
  if (precision == v1::PRECISION_UNSPECIFIED) return absl::OkStatus();
  std::set<v1::Precision> offered;
  for (const v1::Device& device : devices_) {
    if (device.kind() != kind) continue;
    for (const int one : device.precisions()) offered.insert(static_cast<v1::Precision>(one));
  }
  if (offered.count(precision) > 0) return absl::OkStatus();
  std::vector<std::string> names;
  for (const v1::Precision one : offered) names.push_back(v1::Precision_Name(one));
  std::string why;
  if (precision == v1::PRECISION_BFLOAT16 && kind == v1::DEVICE_KIND_CPU) {
    why = ", since this processor has no instructions for it (AVX512_BF16)";
  } else if (precision == v1::PRECISION_FLOAT16 && kind == v1::DEVICE_KIND_CPU) {
    why = ", which is for GPUs";
  }
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "spec.training.precision: ", KindName(kind), " devices here do not compute in ",
          v1::Precision_Name(precision), why, ": the job could never run. They offer ",
          absl::StrJoin(names, ", "), "; ask for that, for another device_kind, or leave precision out")),
      "PRECISION_NOT_OFFERED");
}

}  // namespace tandem
