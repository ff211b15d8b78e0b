#include "server/daemon/cluster_part.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/clusters/slurm/slurm_command_client.h"
#include "server/clusters/slurm_launcher.h"
#include "server/clusters/ssh/ssh_command_client.h"
#include "server/clusters/ssh_launcher.h"
#include "server/store/records.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// Each observation of a host is a connection.
constexpr absl::Duration kObserveHostsEvery = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterPart>> ClusterPart::Open(ClusterJobs::Options options,
                                                               std::string listen,
                                                               const std::vector<std::string>& ssh_hosts,
                                                               JobMachine* jobs) {
  WorkerLauncher::Options& launch = options.launch.launch;
  std::unique_ptr<ClusterPart> part(new ClusterPart(std::move(listen), launch.silence_limit, jobs));
  TANDEM_ASSIGN_OR_RETURN(part->certificate_, LoadWorkerCertificate(options.launch.state_folder));
  if (ssh_hosts.empty()) {
    part->slurm_ = std::make_unique<SlurmCommandClient>(SlurmCommandClient::Options());
    part->launcher_ = std::make_unique<SlurmLauncher>(part->slurm_.get());
  } else {
    part->hosts_ = std::make_unique<SshCommandClient>(SshCommandClient::Options());
    part->launcher_ = std::make_unique<SshLauncher>(
        SshLauncher::Options{.hosts = ssh_hosts, .jobs_folder = options.jobs_folder}, part->hosts_.get());
    options.observe_every = kObserveHostsEvery;
  }
  options.launch.daemon_certificate = part->certificate_.certificate;
  launch.daemon_target = absl::StrCat(part->listen_.front() == '[' ? "ipv6:" : "ipv4:", part->listen_);
  launch.tell = [jobs](const v1::Job& job, const std::string& message) {
    jobs->AddNotice(JobId(job.name()), message);
  };
  part->cluster_jobs_ = std::make_unique<ClusterJobs>(std::move(options), part->launcher_.get(), jobs);
  return part;
}

absl::Status ClusterPart::Begin(const std::vector<v1::Job>& jobs, ClusterJobs::ReleaseLease release_lease) {
  cluster_jobs_->Begin(jobs, std::move(release_lease));
  TANDEM_ASSIGN_OR_RETURN(
      listener_, WorkerListener::Start(
                     {.address = listen_, .certificate = certificate_, .silence_limit = silence_limit_},
                     cluster_jobs_.get(), jobs_));
  spdlog::info("listening to workers of the cluster at {}", listen_);
  return absl::OkStatus();
}

void ClusterPart::Stop() {
  if (listener_ != nullptr) listener_->Stop();
  cluster_jobs_->Stop();
}

absl::Status CheckNoneOnCluster(const std::vector<v1::Job>& jobs) {
  std::vector<absl::string_view> names;
  for (const v1::Job& job : jobs) {
    if (job.spec().has_cluster() && IsHolding(job.state())) names.push_back(job.name());
  }
  if (names.empty()) return absl::OkStatus();
  constexpr size_t kMostNames = 10;
  std::string list = absl::StrJoin(names.begin(), names.begin() + std::min(names.size(), kMostNames), ", ");
  if (names.size() > kMostNames) absl::StrAppend(&list, " and ", names.size() - kMostNames, " more");
  return absl::FailedPreconditionError(
      absl::StrCat("cannot take over the jobs of the earlier daemon: ", list,
                   " may run on the cluster; give --shared-folder and --worker-listen as the earlier daemon "
                   "had them, until these jobs have ended or are paused"));
}

void StarterChoice::Start(const v1::Job& job, const std::vector<v1::Device>& devices) {
  if (!job.spec().has_cluster()) return here_->Start(job, devices);
  if (cluster_ != nullptr) return cluster_->Start(job, devices);
  const std::string id = JobId(job.name());
  jobs_->WorkerLost(
      id, job.attempt(), v1::STATE_REASON_WORKER_START_FAILED,
      "The job is for a cluster, and this daemon was started without a cluster (--shared-folder).",
      [this, id, attempt = job.attempt()](const absl::StatusOr<v1::Job>&) { release_(id, attempt); });
}

}  // namespace tandem
