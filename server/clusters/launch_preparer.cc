#include "server/clusters/launch_preparer.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/training/replica_spec.h"
#include "google/protobuf/message.h"
#include "server/clusters/attempt_files.h"
#include "server/workers/launch_file.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {
namespace {

// Calls `visit` with each text in the message.
void VisitTexts(google::protobuf::Message* message, const std::function<void(std::string*)>& visit) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        VisitTexts(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                        : reflection->MutableMessage(message, field),
                   visit);
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        std::string text = field->is_repeated() ? reflection->GetRepeatedString(*message, field, i)
                                                : reflection->GetString(*message, field);
        const std::string before = text;
        visit(&text);
        if (text == before) continue;
        if (field->is_repeated()) {
          reflection->SetRepeatedString(message, field, i, std::move(text));
        } else {
          reflection->SetString(message, field, std::move(text));
        }
      }
    }
  }
}

// Returns the devices of a job's replicas, in the order of ranks. A worker numbers its GPUs itself.
std::vector<v1::Device> DevicesOf(const v1::JobSpec& spec) {
  const v1::Replicas& replicas = spec.replicas();
  const int count = static_cast<int>(LoadsOf(replicas).size());
  const int each = std::max(1, count / std::max(1, replicas.workers()));
  const v1::Cluster& cluster = spec.cluster();
  const int cores = cluster.has_ssh() ? cluster.ssh().cpus_per_task() : cluster.slurm().cpus_per_task();
  const int threads = std::max(1, cores / each);
  const v1::DeviceKind kind =
      IsAnyKind(replicas.device_kind()) ? v1::DEVICE_KIND_CPU : replicas.device_kind();
  std::vector<v1::Device> devices;
  for (int rank = 0; rank < count; ++rank) {
    v1::Device& device = devices.emplace_back();
    device.set_kind(kind);
    device.set_index(rank);
    device.set_name(DeviceName(kind, rank));
    if (kind != v1::DEVICE_KIND_GPU) device.set_threads(threads);
  }
  return devices;
}

}  // namespace

absl::StatusOr<LaunchRequest> LaunchPreparer::Prepare(const v1::Job& job, const JobFolder& folder,
                                                      const std::string& secret) const {
  LaunchRequest request;
  request.job = job;
  request.job.set_folder(folder.path());
  TANDEM_RETURN_IF_ERROR(
      PrepareAttemptFolder(folder, job.attempt(), std::max(1, job.spec().replicas().workers())));
  TANDEM_ASSIGN_OR_RETURN(internal::v1::WorkerLaunch launch,
                          worker_launcher_.MakeLaunch(request.job, DevicesOf(job.spec()), secret));
  launch.set_output_folder(folder.AttemptFolder(job.attempt()));
  launch.set_daemon_certificate(options_.daemon_certificate);
  *launch.mutable_cluster() = job.spec().cluster();
  std::set<std::string> paths = {options_.worker_program, launch.job_folder()};
  const auto see = [&](std::string* text) {
    if (text->empty() || text->front() != '/') return;
    std::error_code error;
    if (absl::StartsWith(*text, options_.state_folder + "/")) {
      const std::filesystem::path real = std::filesystem::canonical(*text, error);
      if (!error) *text = real.string();
    }
    if (std::filesystem::exists(*text, error)) paths.insert(*text);
  };
  VisitTexts(launch.mutable_dataset(), see);
  see(launch.mutable_initial_weights_path());
  request.required_paths.assign(paths.begin(), paths.end());

  TANDEM_ASSIGN_OR_RETURN(const std::string path, WriteLaunchFile(folder, launch));
  request.command = {options_.worker_program, "--launch", path};
  AddSandboxArguments(options_.sandbox, &request.command);

  int threads = 1;
  for (const v1::Device& device : launch.devices()) threads = std::max(threads, device.threads());
  request.environment = {{"OMP_NUM_THREADS", absl::StrCat(threads)},
                         {"OMP_WAIT_POLICY", "passive"},
                         {"OMP_DYNAMIC", "false"},
                         {"TANDEM_CPU_ALGORITHMS", options_.algorithms_folder + "/cpu-algorithms"},
                         {"TANDEM_CUDA_PLANS", options_.algorithms_folder + "/cuda-plans"}};
  for (const std::string& variable : CollectiveEnvironment(launch)) {
    request.environment.emplace_back(absl::StrSplit(variable, absl::MaxSplits('=', 1)));
  }
  return request;
}

}  // namespace tandem
