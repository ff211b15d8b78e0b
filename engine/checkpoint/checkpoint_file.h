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
#include "engine/checkpoint/safetensors_layout.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// The whole state of a training in a file. FORMAT.md describes the format.
struct CheckpointContents {
  // All state except tensors, as text in the trainer's own format.
  std::string state;
  std::map<std::string, Tensor> tensors;
  int64_t size_bytes = 0;  // Of the file.
};

// Writes a checkpoint atomically: temporary file, fsync, rename, fsync of the folder. After an error an old
// file at `path` is unchanged, unless syncing the folder failed. Returns the file's size. After OK the
// checkpoint is durable. INVALID_ARGUMENT as WriteSafetensors.
absl::StatusOr<int64_t> WriteCheckpoint(Env* env, const std::string& path, const std::string& state,
                                        absl::Span<const NamedTensor> tensors);

// NOT_FOUND if no such file exists. Other errors name the path: DATA_LOSS if it is no whole and unchanged
// checkpoint, FAILED_PRECONDITION if its version is not supported.
absl::StatusOr<CheckpointContents> ReadCheckpoint(Env* env, const std::string& path);

// A checkpoint's header, for readers of single tensors.
struct CheckpointHeader {
  SafetensorsLayout layout;
  int64_t data_begin = 0;  // The offset of the tensors' bytes in the file.

  // The state, as CheckpointContents::state.
  const std::string& state() const;
};

// Returns whether a safetensors file with these metadata is a checkpoint.
bool IsCheckpoint(const std::map<std::string, std::string>& metadata);

// Reads the header of a checkpoint. Compares no checksum, as VerifyCheckpoint does. DATA_LOSS or
// FAILED_PRECONDITION as ReadCheckpoint, without the path.
absl::StatusOr<CheckpointHeader> ReadCheckpointHeader(const RandomAccessFile& file);

// Reads a checkpoint piece by piece and compares its checksum. Errors as ReadCheckpoint. Calls `go_on` before
// each piece, and returns its error.
absl::Status VerifyCheckpoint(
    RandomAccessEnv* env, const std::string& path,
    const std::function<absl::Status()>& go_on = [] { return absl::OkStatus(); });

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FILE_H_
