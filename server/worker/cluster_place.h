#ifndef TANDEM_SERVER_WORKER_CLUSTER_PLACE_H_
#define TANDEM_SERVER_WORKER_CLUSTER_PLACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/worker/environment_launch.h"
#include "tandem/internal/v1/worker.pb.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Gives the launch of a cluster's workers this worker's place: its number in the group, its address for the
// other workers, and the numbers of its GPUs. Reads SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID; on hosts by
// SSH it reads RANK, WORLD_SIZE and LOCAL_RANK. `host` is this node's address. INVALID_ARGUMENT if a variable
// is missing or wrong, for example because Slurm started another number of workers than the launch has.
absl::Status TakePlaceInCluster(const FindVariable& variable, const std::string& host,
                                internal::v1::WorkerLaunch* launch);

// Returns this host's numeric address on the route to `target`, "ipv4:ADDRESS:PORT" or "ipv6:[ADDRESS]:PORT".
// Sends nothing. Needs no name resolution. INVALID_ARGUMENT if the target has another form. UNAVAILABLE if no
// route exists.
absl::StatusOr<std::string> AddressTowards(absl::string_view target);

// The end of an attempt that the cluster announces to its workers.
struct AnnouncedEnd {
  v1::StateReason reason = v1::STATE_REASON_CLUSTER_PREEMPTED;
  std::string message;
};

// Returns the end that the signal announces. On Slurm, SIGUSR1 announces the time limit of the job or its
// partition (sbatch's --signal). SIGTERM announces any other end. Wrong if PreemptParameters in slurm.conf
// has send_user_signal and the partition has a GraceTime: Slurm then announces a preemption by SIGUSR1, too.
AnnouncedEnd EndOfSignal(const v1::Cluster& cluster, int signal);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_CLUSTER_PLACE_H_
