#include "engine/backend/algorithm_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

// An open file, locked against other processes and other descriptors while this lives.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0) {
      ::close(descriptor_);
      descriptor_ = -1;
    }
  }
  ~LockedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool open() const { return descriptor_ >= 0; }

  std::string Read() const {
    std::string text;
    char part[4096];
    for (off_t offset = 0;;) {
      const ssize_t count = ::pread(descriptor_, part, sizeof(part), offset);
      if (count <= 0) return text;
      text.append(part, count);
      offset += count;
    }
  }

  bool Append(absl::string_view text) const {
    return ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

 private:
  int descriptor_;
};

}  // namespace

std::unique_ptr<AlgorithmMemory> AlgorithmMemory::InFileOf(const char* variable) {
  const char* path = std::getenv(variable);
  return std::make_unique<AlgorithmMemory>(path == nullptr ? "" : path);
}

absl::optional<std::string> AlgorithmMemory::Choose(const std::string& problem, const Measure& measure) {
  if (path_.empty()) return absl::nullopt;
  MutexLock lock(&mutex_);
  const auto found = known_.find(problem);
  if (found != known_.end()) return found->second;
  return ChooseInFile(problem, measure);
}

absl::optional<std::string> AlgorithmMemory::ChooseInFile(const std::string& problem,
                                                          const Measure& measure) {
  const LockedFile file(path_);
  if (!file.open()) return absl::nullopt;
  const std::string text = file.Read();
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t blank = line.rfind(' ');
    // The first line of a problem counts, so that the choice never changes.
    if (blank != absl::string_view::npos) {
      known_.emplace(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)));
    }
  }
  const auto found = known_.find(problem);
  if (found != known_.end()) return found->second;
  const absl::optional<std::string> best = measure();
  if (!best.has_value()) return absl::nullopt;
  // A line that was cut off, of a process that was killed, is ended first.
  const bool cut = !text.empty() && text.back() != '\n';
  if (!file.Append(absl::StrCat(cut ? "\n" : "", problem, " ", *best, "\n"))) return absl::nullopt;
  known_.emplace(problem, *best);
  return best;
}

}  // namespace tandem
