#ifndef TANDEM_SERVER_CLUSTERS_SSH_HOST_H_
#define TANDEM_SERVER_CLUSTERS_SSH_HOST_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// A task: one worker process of an attempt, as its host sees it.
struct HostTask {
  std::string job_id;
  int attempt = 0;
  // The worker's number, from 0.
  int rank = 0;
  // The number of the attempt's workers.
  int workers = 1;
  // The share of the host that the task holds. All tasks of an attempt on a host hold the same GPUs.
  int cores = 1;
  std::vector<int> gpus;

  bool operator==(const HostTask&) const = default;
};

// A host, and what runs on it.
struct Host {
  // As in --ssh-host.
  std::string name;
  // Why the host gave no answer, as a sentence without a period. Empty if it answered.
  std::string fault;
  int cores = 0;
  int gpus = 0;
  std::vector<HostTask> tasks;
  // Tells machines apart, since their start. Empty if the host cannot say.
  std::string machine;
  // The earlier host that is the same machine. Such a host starts nothing. Empty if none is.
  std::string same_as;

  bool answers() const { return fault.empty(); }
  int FreeCores() const;
  // In ascending order.
  std::vector<int> FreeGpus() const;
};

// The hosts that an attempt needs.
struct HostNeed {
  int nodes = 1;
  int tasks_per_node = 1;
  int cores_per_task = 1;
  int gpus_per_node = 0;

  int cores_per_node() const { return tasks_per_node * cores_per_task; }
};

// The GPUs of an attempt on each of its hosts, by the host's place in the list.
using HostChoice = std::map<size_t, std::vector<int>>;

// Sets `same_as` of each host. Only the first host of a machine counts its cores and GPUs.
void FindSameMachines(std::vector<Host>* hosts);

// Returns why only one of two hosts can be used, as a sentence without a period: "host b is the same machine
// as host a; remove one of the two --ssh-host".
std::string DescribeSameMachine(absl::string_view host, absl::string_view same_as);

// Chooses hosts that answer and have enough free cores and GPUs. Prefers the hosts with the fewest free GPUs,
// then with the fewest free cores, so that large attempts find whole hosts. Nullopt if too few hosts have
// enough.
std::optional<HostChoice> ChooseHosts(const std::vector<Host>& hosts, const HostNeed& need);

// Returns the number of hosts that have enough cores and GPUs if nothing else runs. Counts hosts whose size
// is unknown.
int CountLargeEnough(const std::vector<Host>& hosts, const HostNeed& need);

// Returns "2 hosts with 4 cores and 1 GPU each".
std::string DescribeNeed(const HostNeed& need);

// Returns why no hosts can be chosen now, as a sentence without a period. Names the hosts that do not answer.
std::string DescribeShortage(const std::vector<Host>& hosts, const HostNeed& need);

// Returns why a name is not usable as the name of a host; empty if it is. ssh must not take the name for an
// option, and messages list names with commas.
std::string FaultOfHostName(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SSH_HOST_H_
