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

// "checkpoint-120.safetensors".
std::string CheckpointFileName(int64_t step);

// The step that a file's name says. NOT_FOUND: it is no checkpoint's name.
absl::StatusOr<int64_t> StepOfCheckpointFile(absl::string_view name);

// The names of the checkpoints in a folder, as their names say, the newest first; none where there is no such
// folder.
absl::StatusOr<std::vector<std::string>> ListCheckpointFiles(Env* env, const std::string& folder);

// What is added to a checkpoint's name that is not to count as one, because its bytes were changed.
inline constexpr char kDamagedCheckpoint[] = ".damaged";

// Removes such checkpoints but for the `kept` newest: somebody may want to look at them, but a disk that
// damages files must not be filled with them.
void RemoveOldDamagedCheckpoints(Env* env, const std::string& folder, int kept);

// Removes what is left of checkpoints that were being written when their process ended.
void RemoveUnfinishedCheckpoints(Env* env, const std::string& folder);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_CHECKPOINT_FOLDER_H_
