#include "server/rpc/model_task.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/jobs/model_artifact.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

// Returns the job's own device if it is a CPU device, so that results equal the job's bit for bit. Otherwise
// returns any CPU device.
v1::Device ChooseDevice(const std::vector<v1::Device>& devices, const v1::Job& job) {
  const auto is_cpu = [](const v1::Device& device) { return device.kind() != v1::DEVICE_KIND_GPU; };
  const auto own = std::find_if(devices.begin(), devices.end(), [&](const v1::Device& device) {
    return is_cpu(device) && !job.devices().empty() && device.name() == job.devices(0);
  });
  if (own != devices.end()) return *own;
  const auto any = std::find_if(devices.begin(), devices.end(), is_cpu);
  if (any != devices.end()) return *any;
  v1::Device device;
  device.set_name("devices/cpu:0");
  device.set_kind(v1::DEVICE_KIND_CPU);
  device.set_threads(1);
  device.set_memory_bytes(int64_t{4} << 30);
  return device;
}

}  // namespace

absl::StatusOr<internal::v1::ModelTask> MakeModelTask(const std::string& name, const std::string& artifact,
                                                      JobMachine* jobs, const Scheduler* scheduler) {
  TANDEM_ASSIGN_OR_RETURN(const std::string id, ParseJobName(name));
  const absl::StatusOr<v1::Job> job = jobs->Get(id);
  if (!job.ok()) return ExplainJobError(job.status(), name);
  internal::v1::ModelTask task;
  TANDEM_ASSIGN_OR_RETURN(const ModelFile file, FindModel(*job, artifact));
  task.set_model_path(file.path);
  task.set_model_sha256(file.sha256);
  *task.mutable_spec() = job->spec();
  *task.mutable_device() = ChooseDevice(scheduler->ListDevices(), *job);
  task.set_memory_bytes(task.device().memory_bytes());
  const auto& offered = task.device().precisions();
  if (std::find(offered.begin(), offered.end(), job->spec().training().precision()) == offered.end()) {
    // The job was trained on a GPU, in a precision that this processor may lack.
    task.mutable_spec()->mutable_training()->clear_precision();
    task.mutable_spec()->mutable_training()->clear_loss_scaling();
  }
  return task;
}

void CheckSamples(const v1::DatasetSpec& dataset, v1::DatasetSplit split, FieldViolations& violations) {
  if (dataset.has_normalization()) {
    violations.Add("dataset.normalization",
                   "must be left out, because samples are normalised as in the job's training");
  }
  if (!v1::DatasetSplit_IsValid(split)) {
    violations.Add("split", absl::StrCat("is ", static_cast<int>(split), ", which is not a split"));
  }
}

absl::StatusOr<v1::DatasetSpec> ResolveDataset(const v1::DatasetSpec& dataset, const std::string& user,
                                               const DatasetCatalog* datasets, const LocalData* local_data) {
  TANDEM_ASSIGN_OR_RETURN(const v1::DatasetSpec here, local_data->EnsureNow(user, dataset, "dataset"));
  absl::StatusOr<v1::DatasetSpec> resolved = datasets->Resolve(here);
  if (resolved.ok()) return resolved;
  FieldViolations violations;
  violations.AddAll("dataset", resolved.status());
  return violations.ToStatus();
}

}  // namespace tandem::rpc
