#include "server/scheduler/host_resources.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/env.h"
#include "server/scheduler/available_memory.h"

namespace tandem {
namespace {

// Returns the folders of this process's control group and of its parent groups, innermost first.
std::vector<std::string> ControlGroupFolders() {
  const std::string root = "/sys/fs/cgroup";
  std::vector<std::string> folders;
  for (absl::string_view line : absl::StrSplit(ContentOrEmpty("/proc/self/cgroup"), '\n')) {
    if (!absl::ConsumePrefix(&line, "0::")) continue;
    std::string group(line);
    while (!group.empty() && group != "/") {
      folders.push_back(root + group);
      group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
  }
  folders.push_back(root);
  return folders;
}

int AffinityCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

std::string CpuModel() {
  for (absl::string_view line : absl::StrSplit(ContentOrEmpty("/proc/cpuinfo"), '\n')) {
    if (!absl::ConsumePrefix(&line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(absl::StripPrefix(absl::StripAsciiWhitespace(line), ":")));
  }
  return "";
}

}  // namespace

HostResources ProbeHost() {
  HostResources host;
  host.cores = AffinityCores();
  host.cpu_model = CpuModel();
  host.bfloat16 = __builtin_cpu_supports("avx512bf16") != 0;
  host.memory_bytes = AvailableMemory();
  for (const std::string& folder : ControlGroupFolders()) {
    // The file is "<microseconds> <period>" or "max ...".
    const std::vector<std::string> quota = absl::StrSplit(ContentOrEmpty(folder + "/cpu.max"), ' ');
    int64_t limit, period;
    if (quota.size() == 2 && absl::SimpleAtoi(quota[0], &limit) && absl::SimpleAtoi(quota[1], &period) &&
        period > 0) {
      host.cores = static_cast<int>(std::clamp<int64_t>(limit / period, 1, host.cores));
    }
  }
  return host;
}

}  // namespace tandem
