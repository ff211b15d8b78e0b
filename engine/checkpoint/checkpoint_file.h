#ifndef TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FILE_H_
#define TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/env.h"
#include "engine/base/random_access_env.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// The whole state of a training, as a file holds it; FORMAT.md says how.
struct CheckpointContents {
  // What is no tensor, as text that is the trainer's own affair.
  std::string state;
  std::map<std::string, Tensor> tensors;
  int64_t size_bytes = 0;  // The file's.
};

// Makes `path` hold this checkpoint, or leaves what is there as it was (temporary file, fsync, rename, fsync
// of the folder). Returns the file's size; on OK it is durable. INVALID_ARGUMENT as WriteSafetensors.
absl::StatusOr<int64_t> WriteCheckpoint(Env* env, const std::string& path, const std::string& state,
                                        absl::Span<const NamedTensor> tensors);

// NOT_FOUND where there is no such file. Errors name the path: DATA_LOSS where it is no whole and unchanged
// checkpoint, FAILED_PRECONDITION where it is one of a version that is not known here.
absl::StatusOr<CheckpointContents> ReadCheckpoint(Env* env, const std::string& path);

// Reads a checkpoint piece by piece and compares its checksum. Errors as ReadCheckpoint's, and that of
// `go_on`, which is asked before each piece.
absl::Status VerifyCheckpoint(
    RandomAccessEnv* env, const std::string& path,
    const std::function<absl::Status()>& go_on = [] { return absl::OkStatus(); });

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FILE_H_
