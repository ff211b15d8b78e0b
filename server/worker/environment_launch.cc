#include "server/worker/environment_launch.h"

#include <algorithm>
#include <initializer_list>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/weights_finder.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

constexpr int kMostWorkers = 1024;

constexpr char kHowToMake[] = "make one with `tandem validate FILE -o json > job.json`";

// Keeps the position and text of the first error in text format.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::StatusOr<v1::JobSpec> ReadJob(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string text, Env::Real()->ReadFile(path));
  if (absl::EndsWith(path, ".yaml") || absl::EndsWith(path, ".yml")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", path, ": it is YAML, and without a daemon a job must be in JSON or text format; ",
        kHowToMake));
  }
  v1::JobSpec spec;
  // No text format begins with "{".
  if (absl::EndsWith(path, ".json") || absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")) {
    const auto status = google::protobuf::util::JsonStringToMessage(text, &spec);
    if (status.ok()) return spec;
    // `tandem validate` and `tandem describe` print a whole job around the spec.
    v1::Job job;
    if (google::protobuf::util::JsonStringToMessage(text, &job).ok() && job.has_spec()) return job.spec();
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, " as a job in JSON: ", std::string(status.message())));
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, &spec)) return spec;
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ":", error.text(),
                                                 " as a job in text format (a JobSpec); ", kHowToMake));
}

// Returns the number in the first variable that is set; `otherwise` if none is set.
absl::StatusOr<int> NumberIn(std::initializer_list<const char*> names, int least, int most, int otherwise,
                             const FindVariable& variable) {
  for (const char* name : names) {
    const std::optional<std::string> text = variable(name);
    if (!text.has_value()) continue;
    int number = 0;
    if (absl::SimpleAtoi(*text, &number) && number >= least && number <= most) return number;
    return absl::InvalidArgumentError(
        absl::StrCat("the environment's ", name, " is '", *text, "'; it must be from ", least, " to ", most));
  }
  return otherwise;
}

// Returns the position of a worker's first GPU among the GPUs that its process sees. The worker has `each`
// GPUs, one per replica. If the visible GPUs do not suffice for the worker and the host's earlier workers,
// they are the worker's own GPUs, as with Slurm's --gpus-per-task.
int FirstGpu(int local, int each, const FindVariable& variable) {
  const std::string visible = variable("CUDA_VISIBLE_DEVICES").value_or("");
  if (visible.empty()) return local * each;
  const int count = static_cast<int>(std::count(visible.begin(), visible.end(), ',')) + 1;
  return (local + 1) * each <= count ? local * each : 0;
}

absl::StatusOr<std::string> MasterAddress(const FindVariable& variable) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (variable(name).value_or("").empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the environment has no ", name,
                       "; set MASTER_ADDR and MASTER_PORT to the address where the first worker listens"));
    }
  }
  const std::string host = *variable("MASTER_ADDR");
  const bool is_bare_ipv6 = host.find(':') != std::string::npos && host[0] != '[';
  std::string port = *variable("MASTER_PORT");
  // torchrun itself listens at the port, so the workers use the next port.
  if (int number = 0;
      variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True" && absl::SimpleAtoi(port, &number)) {
    port = absl::StrCat(number + 1);
  }
  return absl::StrCat(is_bare_ipv6 ? absl::StrCat("[", host, "]") : host, ":", port);
}

}  // namespace

absl::StatusOr<internal::v1::WorkerLaunch> LaunchFromEnvironment(const EnvironmentLaunchOptions& options,
                                                                 const FindVariable& variable) {
  TANDEM_ASSIGN_OR_RETURN(const int workers,
                          NumberIn({"WORLD_SIZE", "SLURM_NTASKS"}, 1, kMostWorkers, 1, variable));
  if (workers > 1 && !variable("RANK").has_value() && !variable("SLURM_PROCID").has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot tell which of ", workers,
        " workers (WORLD_SIZE) this is: the environment has no RANK; set RANK to a different number from 0 "
        "to ",
        workers - 1, " for each, as torchrun does, or start it with srun, which sets SLURM_PROCID"));
  }
  TANDEM_ASSIGN_OR_RETURN(const int worker, NumberIn({"RANK", "SLURM_PROCID"}, 0, workers - 1, 0, variable));
  // An allocation may have more tasks per node than there are workers.
  TANDEM_ASSIGN_OR_RETURN(const int most_here, NumberIn({"LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE"}, 1,
                                                        kMostWorkers, 1, variable));
  const int here = std::min(most_here, workers);
  TANDEM_ASSIGN_OR_RETURN(const int local,
                          NumberIn({"LOCAL_RANK", "SLURM_LOCALID"}, 0, workers - 1, 0, variable));
  internal::v1::WorkerLaunch launch;
  TANDEM_ASSIGN_OR_RETURN(*launch.mutable_spec(), ReadJob(options.job_file));
  v1::Replicas* replicas = launch.mutable_spec()->mutable_replicas();
  // 1 is the default of a job that does not say.
  if (replicas->workers() > 1 && replicas->workers() != workers) {
    return absl::InvalidArgumentError(absl::StrCat("the job's replicas.workers is ", replicas->workers(),
                                                   ", but the environment has ", workers,
                                                   " workers; leave replicas.workers out"));
  }
  replicas->set_workers(workers);
  if (replicas->count() <= 1 && replicas->worker_load().empty() && replicas->devices_size() <= 1) {
    replicas->set_count(workers);
  }
  launch.set_job_id(std::string(options.job_file));
  launch.set_attempt(1);
  launch.set_job_folder(options.output_folder);

  const DatasetCatalog catalog(options.data_folders);
  TANDEM_ASSIGN_OR_RETURN(*launch.mutable_dataset(), catalog.Resolve(launch.spec().dataset()));
  if (launch.spec().has_initial_weights()) {
    const WeightsFinder finder(&catalog, [](const std::string&) -> absl::StatusOr<v1::Job> {
      return absl::NotFoundError("cannot use the model of a job without a daemon; name a file");
    });
    TANDEM_ASSIGN_OR_RETURN(const ModelFile file, finder.Find(launch.spec().initial_weights()));
    launch.set_initial_weights_path(file.path);
  }
  FillDefaults(launch.mutable_spec());
  TANDEM_RETURN_IF_ERROR(CheckJob(launch.spec()));

  const int count = static_cast<int>(LoadsOf(*replicas).size()), each = count / workers;
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = options.threads > 0 ? options.threads : std::max(1, processors / (here * each));
  const v1::DeviceKind kind =
      IsAnyKind(replicas->device_kind()) ? v1::DEVICE_KIND_CPU : replicas->device_kind();
  const bool gpus = kind == v1::DEVICE_KIND_GPU;
  const int first_gpu = FirstGpu(local, each, variable);
  for (int rank = 0; rank < count; ++rank) {
    v1::Device* device = launch.add_devices();
    device->set_kind(kind);
    // GPUs are numbered from 0 on each host.
    const bool is_own = rank / each == worker;
    const int index = gpus && is_own ? first_gpu + rank % each : rank;
    device->set_name(!replicas->devices().empty() ? replicas->devices(rank % replicas->devices_size())
                                                  : DeviceName(kind, index));
    if (!gpus) device->set_threads(threads);
  }
  if (workers == 1) return launch;
  launch.mutable_group()->set_worker(worker);
  launch.mutable_group()->set_workers(workers);
  TANDEM_ASSIGN_OR_RETURN(*launch.mutable_group()->mutable_address(), MasterAddress(variable));
  return launch;
}

}  // namespace tandem
