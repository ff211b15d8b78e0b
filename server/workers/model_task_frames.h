#ifndef TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_
#define TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// How outputs of a model worker go through a pipe: each after its length, 4 bytes, least first.

// Writes an output to an open file. Errors: the other end is gone.
absl::Status WriteModelTaskOutput(const internal::v1::ModelTaskOutput& output, int fd);

// Puts outputs together from what comes through the pipe. Not thread-safe.
class ModelTaskFrameReader {
 public:
  // Reads once what is there; waits where nothing is. False at the pipe's end. DATA_LOSS where it is no
  // output.
  absl::StatusOr<bool> ReadFrom(int fd);
  // The next whole output, if there is one.
  std::optional<internal::v1::ModelTaskOutput> Take();

 private:
  std::string bytes_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_
