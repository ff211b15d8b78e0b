#include "server/clusters/ssh/host.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {
namespace {

std::string CountOf(int count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

}  // namespace

int Host::FreeCores() const {
  // A task may claim any number.
  return std::accumulate(tasks.begin(), tasks.end(), cores,
                         [](int left, const HostTask& task) { return std::max(0, left - task.cores); });
}

std::vector<int> Host::FreeGpus() const {
  std::set<int> free;
  for (int gpu = 0; gpu < gpus; ++gpu) free.insert(gpu);
  for (const HostTask& task : tasks) {
    for (const int gpu : task.gpus) free.erase(gpu);
  }
  return {free.begin(), free.end()};
}

void FindSameMachines(std::vector<Host>* hosts) {
  std::map<std::string, std::string> first;
  for (Host& host : *hosts) {
    host.same_as.clear();
    if (host.machine.empty()) continue;
    const auto [known, is_first] = first.emplace(host.machine, host.name);
    if (!is_first) host.same_as = known->second;
  }
}

std::string DescribeSameMachine(absl::string_view host, absl::string_view same_as) {
  return absl::StrCat("host ", host, " is the same machine as host ", same_as,
                      "; remove one of the two --ssh-host");
}

std::optional<HostChoice> ChooseHosts(const std::vector<Host>& hosts, const HostNeed& need) {
  struct Candidate {
    size_t free_gpus;
    int free_cores;
    size_t place;
    auto operator<=>(const Candidate&) const = default;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!hosts[i].answers() || !hosts[i].same_as.empty()) continue;
    const Candidate one = {hosts[i].FreeGpus().size(), hosts[i].FreeCores(), i};
    if (one.free_cores >= need.cores_per_node() && one.free_gpus >= static_cast<size_t>(need.gpus_per_node)) {
      candidates.push_back(one);
    }
  }
  if (candidates.size() < static_cast<size_t>(need.nodes)) return std::nullopt;
  std::sort(candidates.begin(), candidates.end());
  candidates.resize(need.nodes);
  HostChoice choice;
  for (const Candidate& one : candidates) {
    std::vector<int> gpus = hosts[one.place].FreeGpus();
    gpus.resize(need.gpus_per_node);
    choice[one.place] = std::move(gpus);
  }
  return choice;
}

int CountLargeEnough(const std::vector<Host>& hosts, const HostNeed& need) {
  return static_cast<int>(std::count_if(hosts.begin(), hosts.end(), [&](const Host& host) {
    if (!host.same_as.empty()) return false;
    return host.cores == 0 || (host.cores >= need.cores_per_node() && host.gpus >= need.gpus_per_node);
  }));
}

std::string DescribeNeed(const HostNeed& need) {
  return absl::StrCat(CountOf(need.nodes, "host"), " with ", CountOf(need.cores_per_node(), "core"),
                      need.gpus_per_node > 0 ? absl::StrCat(" and ", CountOf(need.gpus_per_node, "GPU")) : "",
                      need.nodes == 1 ? "" : " each");
}

std::string DescribeShortage(const std::vector<Host>& hosts, const HostNeed& need) {
  std::vector<std::string> faults;
  for (const Host& host : hosts) {
    if (!host.answers()) {
      faults.push_back(host.fault);
    } else if (!host.same_as.empty()) {
      faults.push_back(DescribeSameMachine(host.name, host.same_as));
    }
  }
  return absl::StrCat("it needs ", DescribeNeed(need), ", and too few are free",
                      faults.empty() ? "" : absl::StrCat("; ", absl::StrJoin(faults, "; ")));
}

std::string FaultOfHostName(absl::string_view name) {
  constexpr absl::string_view kMarks = "@._-:[]/";
  const bool is_plain = std::all_of(name.begin(), name.end(), [&](char c) {
    return absl::ascii_isalnum(c) || kMarks.find(c) != absl::string_view::npos;
  });
  if (!name.empty() && name.front() != '-' && is_plain) return "";
  return absl::StrCat("is '", name,
                      "'; must be a host for ssh, such as gpu1, user@gpu1 or ssh://user@gpu1:2222");
}

}  // namespace tandem
