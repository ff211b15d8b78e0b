#include "server/http/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/version.h"
#include "server/http/metrics.h"

namespace tandem {
namespace {

// Returns the fields of /proc/self/stat from the third on (proc(5)). The process's name may have any
// characters, so the fields start after the last parenthesis.
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t end = line.rfind(") ");
  if (end == std::string::npos) return {};
  return absl::StrSplit(line.substr(end + 2), ' ');
}

// Returns field `number` of proc(5); -1 if missing.
double FieldOf(const std::vector<std::string>& fields, size_t number) {
  double value = -1;
  if (number < 3 || number - 3 >= fields.size() || !absl::SimpleAtod(fields[number - 3], &value)) return -1;
  return value;
}

// Returns the machine's start in seconds since the epoch; -1 if unknown.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    double value = -1;
    if (absl::StartsWith(line, "btime ") && absl::SimpleAtod(absl::string_view(line).substr(6), &value)) {
      return value;
    }
  }
  return -1;
}

double OpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) return -1;
  double count = 0;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') ++count;
  }
  // Excludes the descriptor of this listing.
  return count - 1;
}

double MostOpenFiles() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : -1;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](const char* name, const char* help, double value,
                               prometheus::MetricType type = prometheus::MetricType::Gauge) {
    if (value < 0) return;
    GaugeFamily family(name, help, type);
    family.Add({}, value);
    std::move(family).MoveTo(&families);
  };
  GaugeFamily build("tandem_build_info", "Always 1; the labels describe this daemon.");
  build.Add({{"version", kVersion}, {"cuda", cuda_major_ > 0 ? absl::StrCat(cuda_major_) : "none"}}, 1);
  std::move(build).MoveTo(&families);

  const std::vector<std::string> fields = StatFields();
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double user = FieldOf(fields, 14);
  const double system = FieldOf(fields, 15);
  if (user >= 0 && system >= 0) {
    add("process_cpu_seconds_total", "CPU time in user and system mode, in seconds.", (user + system) / ticks,
        prometheus::MetricType::Counter);
  }
  const double boot = BootTime();
  const double start = FieldOf(fields, 22);
  if (boot >= 0 && start >= 0) {
    add("process_start_time_seconds", "Start time of the process, in seconds since 1970.",
        boot + start / ticks);
  }
  add("process_virtual_memory_bytes", "Size of the address space.", FieldOf(fields, 23));
  const double pages = FieldOf(fields, 24);
  if (pages >= 0) {
    add("process_resident_memory_bytes", "Resident memory.",
        pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  add("process_threads", "Threads.", FieldOf(fields, 20));
  add("process_open_fds", "Open files.", OpenFiles());
  add("process_max_fds", "Limit of open files.", MostOpenFiles());
  return families;
}

}  // namespace tandem
