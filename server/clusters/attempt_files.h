#ifndef TANDEM_SERVER_CLUSTERS_ATTEMPT_FILES_H_
#define TANDEM_SERVER_CLUSTERS_ATTEMPT_FILES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/workers/job_folder.h"

namespace tandem {

// A cluster's workers write checkpoints and artifacts only into their attempt's folder. So a worker of an old
// attempt, on a node that was cut off, can change nothing of a newer attempt. The daemon gives the files a
// second name in the job's folder: a hard link, or a copy if the file system has no hard links.

// Creates the attempt's folder with the job's checkpoints and best model in it, so that the attempt can
// continue. Also creates the logs of `workers` workers, which later attempts continue. Idempotent.
absl::Status PrepareAttemptFolder(const JobFolder& folder, int attempt, int workers);

// Makes the job's folder have the attempt's checkpoints and artifacts, and no other checkpoints. Does nothing
// if the attempt has no folder. Idempotent. Call for the newest attempt alone.
absl::Status PublishAttemptFiles(const JobFolder& folder, int attempt);

// Removes the model files of an ended attempt's folder; the job's folder still has them.
void RemoveAttemptFiles(const JobFolder& folder, int attempt);

// Returns when the attempt's batch script began: the time of the file "started". Nullopt if the script has
// not begun.
std::optional<absl::Time> StartOfAttempt(const JobFolder& folder, int attempt);

// The end of an attempt's batch script.
struct AttemptEnd {
  int exit_code = 0;
  // True if somebody sent SIGTERM to the script before its end.
  bool was_terminated = false;
  bool operator==(const AttemptEnd&) const = default;
};

// Reads the file "ended" of the attempt. Nullopt if the file does not exist or cannot be read.
std::optional<AttemptEnd> EndOfAttempt(const JobFolder& folder, int attempt);

// The files of an attempt's tasks on hosts by SSH (TaskScript). Workers can write them.
struct TaskFiles {
  // The host of each task that has started, by its rank.
  std::map<int, std::string> started;
  // The exit code of each task that has ended by itself, by its rank.
  std::map<int, int> ended;
};

// Reads the files of the tasks 0 to `workers` - 1.
TaskFiles ReadTaskFiles(const JobFolder& folder, int attempt, int workers);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_ATTEMPT_FILES_H_
