#include "server/worker/trainer_options.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/gloo/folder_rendezvous.h"
#include "engine/collectives/gloo/gloo_ranks.h"
#include "engine/collectives/gloo/tcp_rendezvous.h"

namespace tandem {
namespace {

using internal::v1::WorkerGroup;
using Communicators = std::vector<std::unique_ptr<Communicator>>;

// A daemon starts all workers at once. A cluster's workers may wait in its queue.
constexpr absl::Duration kConnectHere = absl::Minutes(2);
constexpr absl::Duration kConnectAnywhere = absl::Minutes(10);
constexpr absl::Duration kSilenceLimit = absl::Seconds(30);

GlooOptions GlooOptionsOf(const WorkerGroup& group, int first, int count, absl::Duration watchdog) {
  GlooOptions options;
  options.rank = first;
  options.world_size = count * group.workers();
  for (int rank = 0; rank < options.world_size; ++rank) {
    options.notes.push_back(absl::StrCat("worker ", rank / count));
  }
  options.connect_timeout = kConnectHere;
  options.silence_limit =
      group.silence_seconds() > 0 ? absl::Seconds(group.silence_seconds()) : kSilenceLimit;
  options.call_limit = watchdog;
  return options;
}

}  // namespace

std::string OutputFolderOf(const internal::v1::WorkerLaunch& launch) {
  return launch.output_folder().empty() ? launch.job_folder() : launch.output_folder();
}

Trainer::Options TrainerOptionsOf(const internal::v1::WorkerLaunch& launch, DeviceFactory device_factory) {
  Trainer::Options options;
  options.spec = launch.spec();
  options.dataset = launch.dataset();
  options.devices.assign(launch.devices().begin(), launch.devices().end());
  options.device_factory = std::move(device_factory);
  options.checkpoint_folder = OutputFolderOf(launch);
  options.best_path = absl::StrCat(OutputFolderOf(launch), "/", kBestFile);
  options.initial_weights_path = launch.initial_weights_path();
  options.initial_weights_sha256 = launch.initial_weights_sha256();
  if (launch.watchdog_seconds() > 0) options.watchdog = absl::Seconds(launch.watchdog_seconds());
  const WorkerGroup& group = launch.group();
  if (group.workers() <= 1) return options;

  options.group.worker = group.worker();
  options.group.workers = group.workers();
  if (group.has_folder()) {
    options.group.connect = [group, watchdog = options.watchdog](int first,
                                                                 int count) -> absl::StatusOr<Communicators> {
      FolderRendezvous rendezvous(group.folder());
      GlooOptions gloo = GlooOptionsOf(group, first, count, watchdog);
      if (!group.host().empty()) {
        gloo.host = group.host();
        gloo.connect_timeout = kConnectAnywhere;
      }
      return ConnectGlooRanks(gloo, count, rendezvous);
    };
    return options;
  }
  // Other workers ask the first worker's rendezvous even after its own connection, so it lives as long as
  // these options.
  auto rendezvous = std::make_shared<std::unique_ptr<TcpRendezvous>>();
  options.group.connect = [group, rendezvous, watchdog = options.watchdog](
                              int first, int count) -> absl::StatusOr<Communicators> {
    TANDEM_ASSIGN_OR_RETURN(*rendezvous,
                            group.worker() == 0
                                ? TcpRendezvous::Serve(group.address(), group.workers() - 1, kConnectAnywhere)
                                : TcpRendezvous::Reach(group.address(), kConnectAnywhere));
    GlooOptions gloo = GlooOptionsOf(group, first, count, watchdog);
    gloo.host = (*rendezvous)->host();
    gloo.connect_timeout = kConnectAnywhere;
    return ConnectGlooRanks(gloo, count, **rendezvous);
  };
  return options;
}

}  // namespace tandem
