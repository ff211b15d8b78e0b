#include "server/scheduler/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/env.h"

namespace tandem {

int64_t AvailableMemory(const std::string& root) {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const auto take = [&bytes](const std::string& file) {
    // "max" in version 2, and a huge number in version 1, mean no limit.
    int64_t limit = 0;
    if (absl::SimpleAtoi(ContentOrEmpty(file), &limit) && limit > 0) bytes = std::min(bytes, limit);
  };
  // Each line is "<number>:<controllers>:<group>". Version 2 has the number 0 and no controllers.
  for (const absl::string_view line :
       absl::StrSplit(ContentOrEmpty(absl::StrCat(root, "/proc/self/cgroup")), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool is_second = parts[1].empty();
    if (!is_second && std::find(controllers.begin(), controllers.end(), "memory") == controllers.end())
      continue;
    const std::string top = absl::StrCat(root, is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    const char* const file = is_second ? "/memory.max" : "/memory.limit_in_bytes";
    // Take the limits of the group and of its parent groups.
    for (std::string group = parts[2]; group.size() > 1; group.resize(group.rfind('/'))) {
      take(absl::StrCat(top, group, file));
    }
    take(absl::StrCat(top, file));
  }
  return bytes;
}

}  // namespace tandem
