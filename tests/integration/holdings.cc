#include "tests/integration/holdings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tandem::testing {

Holdings HoldingsOf(pid_t pid) {
  Holdings holdings;
  const std::string folder = absl::StrCat("/proc/", pid, "/fd");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    ++holdings.files;
    std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    // Without the number of a socket or pipe, which tells two of them apart and no more.
    for (const char* kind : {"socket:", "pipe:"}) {
      if (absl::StartsWith(target, kind)) target = kind;
    }
    if (target == "socket:") ++holdings.sockets;
    holdings.targets.push_back(std::move(target));
  }
  std::sort(holdings.targets.begin(), holdings.targets.end());
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  std::string line;
  while (std::getline(status, line)) {
    int64_t kilobytes = 0;
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() > 1 && words[0] == "VmRSS:" && absl::SimpleAtoi(words[1], &kilobytes)) {
      holdings.memory_bytes = kilobytes * 1024;
    }
  }
  return holdings;
}

}  // namespace tandem::testing
