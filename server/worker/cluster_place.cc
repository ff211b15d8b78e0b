#include "server/worker/cluster_place.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"

namespace tandem {
namespace {

// The variables of a worker's place. On hosts by SSH, the daemon's script sets them.
struct PlaceVariables {
  const char* workers;
  const char* worker;
  const char* local;
  const char* starter;
};
constexpr PlaceVariables kSlurm = {"SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "Slurm's srun"};
constexpr PlaceVariables kSsh = {"WORLD_SIZE", "RANK", "LOCAL_RANK", "the script of a task"};

absl::StatusOr<int> NumberOf(const char* name, const PlaceVariables& names, const FindVariable& variable) {
  const std::optional<std::string> text = variable(name);
  int number = 0;
  if (text.has_value() && absl::SimpleAtoi(*text, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot find this worker's place: the environment's ", name,
                   text.has_value() ? absl::StrCat(" is \"", *text, "\"") : " is not set", "; ",
                   names.starter, " must start the worker"));
}

}  // namespace

absl::Status TakePlaceInCluster(const FindVariable& variable, const std::string& host,
                                internal::v1::WorkerLaunch* launch) {
  const int workers = std::max(1, launch->group().workers());
  const PlaceVariables& names = launch->cluster().has_ssh() ? kSsh : kSlurm;
  TANDEM_ASSIGN_OR_RETURN(const int tasks, NumberOf(names.workers, names, variable));
  TANDEM_ASSIGN_OR_RETURN(const int worker, NumberOf(names.worker, names, variable));
  TANDEM_ASSIGN_OR_RETURN(const int local, NumberOf(names.local, names, variable));
  if (tasks != workers || worker >= workers) {
    return absl::InvalidArgumentError(absl::StrCat("cannot take the place ", worker, " of ", tasks,
                                                   ": the job has ", workers,
                                                   " workers; do not change the script that starts them"));
  }
  const int each = launch->devices_size() / workers;
  for (int replica = 0; replica < each; ++replica) {
    v1::Device* const device = launch->mutable_devices(worker * each + replica);
    if (device->kind() != v1::DEVICE_KIND_GPU) continue;
    // A job's GPUs are numbered from 0 on each node.
    device->set_index(local * each + replica);
    device->set_name(absl::StrCat("devices/gpu:", device->index()));
  }
  if (workers == 1) return absl::OkStatus();
  launch->mutable_group()->set_worker(worker);
  launch->mutable_group()->set_host(host);
  return absl::OkStatus();
}

absl::StatusOr<std::string> AddressTowards(absl::string_view target) {
  absl::string_view address = target;
  const bool is_v4 = absl::ConsumePrefix(&address, "ipv4:");
  if (!is_v4 && !absl::ConsumePrefix(&address, "ipv6:")) {
    return absl::InvalidArgumentError(absl::StrCat("\"", target, "\" is no numeric address"));
  }
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  std::string host(address.substr(0, colon == absl::string_view::npos ? 0 : colon));
  if (!is_v4 && host.size() > 2) host = host.substr(1, host.size() - 2);
  sockaddr_storage there = {}, here = {};
  socklen_t size = 0;
  bool is_address = colon != absl::string_view::npos && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
                    port > 0 && port <= 65535;
  if (is_v4) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&there);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    size = sizeof(*v4);
    is_address = is_address && inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1;
  } else {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&there);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    size = sizeof(*v6);
    is_address = is_address && inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1;
  }
  if (!is_address) return absl::InvalidArgumentError(absl::StrCat("\"", target, "\" is no numeric address"));
  const UniqueFd fd(socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  socklen_t here_size = sizeof(here);
  // Connecting a datagram socket only looks up the route.
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&here), &here_size) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot find a route to the daemon at ", address, ": ",
                                               absl::ErrnoToStatus(errno, "").message()));
  }
  char text[INET6_ADDRSTRLEN] = {};
  const void* const bytes = is_v4 ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&here)->sin_addr)
                                  : &reinterpret_cast<sockaddr_in6*>(&here)->sin6_addr;
  if (inet_ntop(there.ss_family, bytes, text, sizeof(text)) == nullptr) {
    return absl::ErrnoToStatus(errno, "cannot write this host's address");
  }
  return std::string(text);
}

AnnouncedEnd EndOfSignal(const v1::Cluster& cluster, int signal) {
  if (cluster.has_ssh()) {
    return {v1::STATE_REASON_CLUSTER_PREEMPTED,
            "The attempt was ended: another of its workers failed, or a person stopped it."};
  }
  if (signal == SIGUSR1) {
    return {v1::STATE_REASON_CLUSTER_TIME_LIMIT, "Slurm ended the attempt at its time limit."};
  }
  return {v1::STATE_REASON_CLUSTER_PREEMPTED,
          "Slurm ended the attempt: another job needed the nodes, or a person stopped it."};
}

}  // namespace tandem
