#ifndef TANDEM_ENGINE_BACKEND_ALGORITHM_MEMORY_H_
#define TANDEM_ENGINE_BACKEND_ALGORITHM_MEMORY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "engine/base/mutex.h"

namespace tandem {

// Remembers the fastest algorithm of each problem in a file. The first process that measures a problem
// settles the choice for all later runs on the machine. Algorithms round differently, and two runs of a job
// must be equal bit for bit. The file has a line "<problem> <algorithm>" for each problem. Without the file
// everything is measured again. A process gives the file up for its lifetime if it cannot lock the file in
// time, or if the file is no plain file of at most 4 MiB. Thread-safe, also between processes.
class AlgorithmMemory {
 public:
  // Uses the file `path`, which need not exist. With an empty path nothing is measured. `longest_wait` bounds
  // the wait for all processes that are ahead. Each process holds the file for seconds at most.
  explicit AlgorithmMemory(std::string path, absl::Duration longest_wait = absl::Minutes(2))
      : path_(std::move(path)), longest_wait_(longest_wait) {}

  // Uses the file that this environment variable names, or no file if the variable is not set.
  static std::unique_ptr<AlgorithmMemory> InFileOf(const char* variable);

  // Returns the fastest algorithm, or nothing if no algorithm works. Nothing is not remembered.
  using Measure = std::function<absl::optional<std::string>()>;
  // Returns the algorithm, a single word, for `problem`, a text without line breaks. Calls `measure` if none
  // is remembered. No other measurement runs meanwhile. Returns nothing if the file cannot be locked or
  // written. Then the choice must depend on the problem alone.
  absl::optional<std::string> Choose(const std::string& problem, const Measure& measure);

 private:
  absl::optional<std::string> ChooseInFile(const std::string& problem, const Measure& measure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Adds the whole lines of `text` to known_.
  void Learn(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const absl::Duration longest_wait_;
  Mutex mutex_;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_ALGORITHM_MEMORY_H_
