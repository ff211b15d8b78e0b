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

// Which of several algorithms was measured to be the fastest, by problem. It is kept in a file, where whoever
// measures first settles the choice for all later runs on the machine: algorithms round differently, and two
// runs of a job are to be equal bit for bit. The file has a line "<problem> <algorithm>" for each; without it
// everything is measured anew. Whoever cannot have it within a time, or finds something else than a plain
// file of at most 4 MiB, does without from then on. Thread-safe, and safe among processes.
class AlgorithmMemory {
 public:
  // Kept in the file `path`, which need not exist; with an empty one nothing is measured. Others measure for
  // seconds at most while they hold the file: `longest_wait` is for all who are before this process.
  explicit AlgorithmMemory(std::string path, absl::Duration longest_wait = absl::Minutes(2))
      : path_(std::move(path)), longest_wait_(longest_wait) {}

  // In the file that this variable of the process's environment names; with none where that is not set.
  static std::unique_ptr<AlgorithmMemory> InFileOf(const char* variable);

  // What `measure` returns: none where no algorithm works, which is not remembered.
  using Measure = std::function<absl::optional<std::string>()>;
  // The algorithm, a word, for `problem`, a text without line breaks: the remembered one, or what `measure`
  // returns, once; nothing else is measured meanwhile. None where the file cannot be had or written:
  // then the choice must follow from the problem alone.
  absl::optional<std::string> Choose(const std::string& problem, const Measure& measure);

 private:
  absl::optional<std::string> ChooseInFile(const std::string& problem, const Measure& measure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What the file's whole lines say.
  void Learn(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const absl::Duration longest_wait_;
  Mutex mutex_;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_ALGORITHM_MEMORY_H_
