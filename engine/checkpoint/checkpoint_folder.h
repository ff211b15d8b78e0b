#ifndef TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_
#define TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"

namespace tandem {

// Returns for example "checkpoint-120.safetensors".
std::string CheckpointFileName(int64_t step);

// Returns the step in a checkpoint's file name. NOT_FOUND if it is no checkpoint's name.
absl::StatusOr<int64_t> StepOfCheckpointFile(absl::string_view name);

// Returns the names of the checkpoints in a folder, newest first. Empty if no such folder exists. Does not
// read the files.
absl::StatusOr<std::vector<std::string>> ListCheckpointFiles(Env* env, const std::string& folder);

// The suffix of a damaged checkpoint, so that it no longer counts as a checkpoint.
inline constexpr char kDamagedCheckpoint[] = ".damaged";

// Removes damaged checkpoints except the `kept` newest. People may want to examine a damaged file, but a disk
// that damages files must not fill up with them.
void RemoveOldDamagedCheckpoints(Env* env, const std::string& folder, int kept);

// Removes the incomplete checkpoints of processes that ended during a write.
void RemoveUnfinishedCheckpoints(Env* env, const std::string& folder);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_
