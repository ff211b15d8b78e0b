#ifndef TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_
#define TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// The form of a model worker's outputs in a pipe: each output after its length in 4 bytes, little-endian.

// Writes an output to an open file. Errors: the other end is closed.
absl::Status WriteModelTaskOutput(const internal::v1::ModelTaskOutput& output, int fd);

// Assembles outputs from a pipe's bytes. Not thread-safe.
class ModelTaskFrameReader {
 public:
  // Reads available bytes once; blocks if there are none. Returns false at the pipe's end. DATA_LOSS if the
  // bytes are no output.
  absl::StatusOr<bool> ReadFrom(int fd);
  // Returns the next complete output; nullopt if none.
  std::optional<internal::v1::ModelTaskOutput> Take();

 private:
  std::string bytes_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_
