#include "server/daemon/cluster_part.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/store/records.h"
#include "third_party/spdlog/log.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<ClusterPart>> ClusterPart::Open(ClusterJobs::Options options,
                                                               std::string listen, JobMachine* jobs) {
  WorkerLauncher::Options& launch = options.launch.launch;
  std::unique_ptr<ClusterPart> part(new ClusterPart(std::move(listen), launch.silence_limit, jobs));
  TANDEM_ASSIGN_OR_RETURN(part->certificate_, LoadWorkerCertificate(options.launch.state_folder));
  part->client_ = std::make_unique<SlurmCommandClient>(SlurmCommandClient::Options());
  part->launcher_ = std::make_unique<SlurmLauncher>(part->client_.get());
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

absl::Status ClusterPart::Test(const v1::JobSpec& spec) {
  SlurmRequest request = SlurmRequestOf(spec);
  request.comment = SlurmCommentOf({"test", 1});
  const absl::Status status = client_->Test(request);
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(
        absl::StrCat("cannot check the job: ", status.message(),
                     "; submit the job again when `sinfo` answers on the daemon's machine"));
  }
  if (!absl::IsInvalidArgument(status) || GetFieldViolations(status).empty()) return status;
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    const bool is_time = violation.field == "time_limit";
    violations.Add(is_time ? "time_limit_seconds" : violation.field, violation.description);
  }
  return violations.ToStatus();
}

absl::StatusOr<std::vector<v1::ClusterPartition>> ClusterPart::Partitions() {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SlurmPartition> known, client_->Partitions());
  std::vector<v1::ClusterPartition> partitions;
  for (const SlurmPartition& one : known) {
    v1::ClusterPartition& partition = partitions.emplace_back();
    partition.set_name(one.name);
    partition.set_is_default(one.is_default);
    partition.set_is_up(one.is_up && one.down_nodes < one.nodes);
    if (one.time_limit != absl::InfiniteDuration()) {
      partition.set_time_limit_seconds(absl::ToDoubleSeconds(one.time_limit));
    }
    partition.set_nodes(one.nodes);
    partition.set_free_nodes(one.free_nodes);
    partition.set_cpus_per_node(one.cpus_per_node);
    partition.set_gpus_per_node(one.gpus_per_node);
  }
  std::sort(partitions.begin(), partitions.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return partitions;
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
