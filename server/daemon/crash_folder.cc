#include "server/daemon/crash_folder.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/crash_report.h"
#include "engine/base/version.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

constexpr size_t kKept = 10;

}  // namespace

std::vector<std::string> FindCrashReports(const std::string& state_folder) {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "crash-") || !absl::EndsWith(name, ".txt")) continue;
    const auto time = entry.last_write_time(error);
    if (!error) found.emplace_back(time, entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> reports;
  for (auto& [time, path] : found) reports.push_back(std::move(path));
  return reports;
}

void NoteCrashReports(const std::string& state_folder) {
  const std::vector<std::string> reports = FindCrashReports(state_folder);
  for (size_t i = 0; i < reports.size(); ++i) {
    if (i < kKept) {
      spdlog::warn("an earlier daemon crashed; its stack is in {}, which may be removed", reports[i]);
    } else {
      unlink(reports[i].c_str());
    }
  }
  const absl::Time now = absl::Now();
  SetCrashReportFile(
      absl::StrCat(state_folder, "/crash-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()), "-",
                   getpid(), ".txt"),
      absl::StrCat("tandemd ", kVersion, ", process ", getpid(), ", started ",
                   absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())));
}

}  // namespace tandem
