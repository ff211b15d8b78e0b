#include "engine/backend/algorithm_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/base/clock.h"

namespace tandem {
namespace {

// A line has less than a kilobyte, and no machine has measured this many problems.
constexpr off_t kMostBytes = 4 << 20;

// An open plain file of at most kMostBytes. Any user's worker may write to it (server/workers/SANDBOX.md), so
// other files are refused. The destructor unlocks the file.
class SharedFile {
 public:
  explicit SharedFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644)) {
    struct stat file;
    if (descriptor_ >= 0 &&
        (::fstat(descriptor_, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size > kMostBytes)) {
      ::close(descriptor_);
      descriptor_ = -1;
    }
  }
  ~SharedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  bool open() const { return descriptor_ >= 0; }

  std::string Read() const {
    std::string text;
    char part[4096];
    for (off_t offset = 0; offset < kMostBytes;) {
      const ssize_t count = ::pread(descriptor_, part, sizeof(part), offset);
      if (count <= 0) break;
      text.append(part, count);
      offset += count;
    }
    return text;
  }

  bool Append(absl::string_view text) const {
    return ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  // Locks the file against other processes and descriptors. Returns false if it takes longer than
  // `longest_wait`.
  bool Lock(absl::Duration longest_wait) const {
    const absl::Duration end = Clock::Real()->Elapsed() + longest_wait;
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return false;
      if (Clock::Real()->Elapsed() >= end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
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
  // A process that held the file for so long would do so for each problem of a network.
  if (given_up_) return absl::nullopt;
  return ChooseInFile(problem, measure);
}

void AlgorithmMemory::Learn(absl::string_view text) {
  // An incomplete last line is being written, or its writer was killed.
  for (const absl::string_view line : absl::StrSplit(text.substr(0, text.rfind('\n') + 1), '\n')) {
    const size_t blank = line.rfind(' ');
    // The first line of a problem counts, so that the choice never changes. A line that was cut off before
    // its choice ends with a blank.
    if (blank != absl::string_view::npos && blank + 1 < line.size()) {
      known_.emplace(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)));
    }
  }
}

absl::optional<std::string> AlgorithmMemory::ChooseInFile(const std::string& problem,
                                                          const Measure& measure) {
  const SharedFile file(path_);
  given_up_ = !file.open();
  if (given_up_) return absl::nullopt;
  // Lines are only appended, so all whole lines count without a lock.
  Learn(file.Read());
  if (const auto found = known_.find(problem); found != known_.end()) return found->second;
  given_up_ = !file.Lock(longest_wait_);
  if (given_up_) return absl::nullopt;
  const std::string text = file.Read();
  Learn(text);
  if (const auto found = known_.find(problem); found != known_.end()) return found->second;
  const absl::optional<std::string> best = measure();
  if (!best.has_value()) return absl::nullopt;
  // The incomplete line of a killed process is ended first. It then matches no problem.
  const bool cut = !text.empty() && text.back() != '\n';
  if (!file.Append(absl::StrCat(cut ? " \n" : "", problem, " ", *best, "\n"))) return absl::nullopt;
  known_.emplace(problem, *best);
  return best;
}

}  // namespace tandem
