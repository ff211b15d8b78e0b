#ifndef TANDEM_SERVER_DAEMON_CLUSTER_PART_H_
#define TANDEM_SERVER_DAEMON_CLUSTER_PART_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/clusters/cluster_jobs.h"
#include "server/clusters/launcher.h"
#include "server/clusters/slurm/slurm_client.h"
#include "server/clusters/ssh/host_client.h"
#include "server/clusters/worker_listener.h"
#include "server/jobs/job_machine.h"
#include "server/scheduler/worker_starter.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// The daemon's cluster: Slurm or hosts by SSH, the jobs' attempts, and the TCP listener for workers.
// Thread-safe.
class ClusterPart {
 public:
  // Fills in what `options` leaves open: the workers' certificate, the daemon's address and `tell`. `listen`
  // is DaemonOptions::worker_listen. Without `ssh_hosts`, the cluster is Slurm's. `jobs` must outlive the
  // part.
  static absl::StatusOr<std::unique_ptr<ClusterPart>> Open(ClusterJobs::Options options, std::string listen,
                                                           const std::vector<std::string>& ssh_hosts,
                                                           JobMachine* jobs);

  // Takes over an earlier daemon's attempts, then listens to workers. See ClusterJobs::Begin.
  absl::Status Begin(const std::vector<v1::Job>& jobs, ClusterJobs::ReleaseLease release_lease);
  void Stop();
  bool WaitUntilIdle(absl::Duration timeout) { return cluster_jobs_->WaitUntilIdle(timeout); }

  WorkerStarter* starter() { return cluster_jobs_.get(); }
  JobObserver* observer() { return cluster_jobs_.get(); }
  std::optional<v1::Waiting> WaitingOf(const std::string& job_id) { return cluster_jobs_->WaitingOf(job_id); }

  // As in Launcher.
  absl::Status Test(const v1::JobSpec& spec) { return launcher_->Test(spec); }
  absl::StatusOr<std::vector<v1::ClusterPartition>> Partitions() { return launcher_->Partitions(); }

 private:
  ClusterPart(std::string listen, absl::Duration silence_limit, JobMachine* jobs)
      : listen_(std::move(listen)), silence_limit_(silence_limit), jobs_(jobs) {}

  const std::string listen_;
  const absl::Duration silence_limit_;
  JobMachine* const jobs_;
  WorkerCertificate certificate_;
  // Null if the cluster is hosts by SSH.
  std::unique_ptr<SlurmClient> slurm_;
  // Null if the cluster is Slurm's.
  std::unique_ptr<HostClient> hosts_;
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<ClusterJobs> cluster_jobs_;
  std::unique_ptr<WorkerListener> listener_;
};

// Checks that a daemon without a cluster can take over these jobs of an earlier daemon. FAILED_PRECONDITION:
// some jobs run on a cluster, so nothing would ever end them.
absl::Status CheckNoneOnCluster(const std::vector<v1::Job>& jobs);

// Starts a job's workers on this machine, or on a cluster if the job asks for a cluster. Thread-safe.
class StarterChoice final : public WorkerStarter {
 public:
  using Release = std::function<void(const std::string& job_id, int32_t attempt)>;

  // `cluster` may be null: a job for a cluster then fails. All must outlive this object.
  StarterChoice(WorkerStarter* here, WorkerStarter* cluster, JobMachine* jobs, Release release)
      : here_(here), cluster_(cluster), jobs_(jobs), release_(std::move(release)) {}

  void Start(const v1::Job& job, const std::vector<v1::Device>& devices) override;

 private:
  WorkerStarter* const here_;
  WorkerStarter* const cluster_;
  JobMachine* const jobs_;
  const Release release_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CLUSTER_PART_H_
