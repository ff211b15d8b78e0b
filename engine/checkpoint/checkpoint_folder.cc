#include "engine/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr char kPrefix[] = "checkpoint-";
constexpr char kEnding[] = ".safetensors";

// Those of `names` that are checkpoints' names followed by `ending`, the newest first.
std::vector<std::string> NewestFirst(const std::vector<std::string>& names, absl::string_view ending) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : names) {
    absl::string_view whole = name;
    if (!absl::ConsumeSuffix(&whole, ending)) continue;
    if (const absl::StatusOr<int64_t> step = StepOfCheckpointFile(whole); step.ok())
      found.emplace_back(*step, name);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<std::string> sorted;
  for (auto& [step, name] : found) sorted.push_back(std::move(name));
  return sorted;
}

// Removes the folder's checkpoints whose names are followed by `ending`, except the `kept` newest.
void RemoveAllBut(Env* env, const std::string& folder, absl::string_view ending, size_t kept) {
  const absl::StatusOr<std::vector<std::string>> names = env->ListFolder(folder);
  if (!names.ok()) return;
  const std::vector<std::string> found = NewestFirst(*names, ending);
  for (size_t i = kept; i < found.size(); ++i) {
    env->RemoveFile(absl::StrCat(folder, "/", found[i])).IgnoreError();
  }
}

}  // namespace

std::string CheckpointFileName(int64_t step) { return absl::StrCat(kPrefix, step, kEnding); }

absl::StatusOr<int64_t> StepOfCheckpointFile(absl::string_view name) {
  absl::string_view digits = name;
  int64_t step = 0;
  if (absl::ConsumePrefix(&digits, kPrefix) && absl::ConsumeSuffix(&digits, kEnding) &&
      absl::SimpleAtoi(digits, &step) && step >= 0 && CheckpointFileName(step) == name) {
    return step;
  }
  return absl::NotFoundError(absl::StrCat("\"", name, "\" is no checkpoint's name"));
}

absl::StatusOr<std::vector<std::string>> ListCheckpointFiles(Env* env, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = env->ListFolder(folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  TANDEM_RETURN_IF_ERROR(names.status());
  return NewestFirst(*names, "");
}

void RemoveOldDamagedCheckpoints(Env* env, const std::string& folder, int kept) {
  RemoveAllBut(env, folder, kDamagedCheckpoint, kept);
}

void RemoveUnfinishedCheckpoints(Env* env, const std::string& folder) {
  RemoveAllBut(env, folder, kUnfinishedEnding, 0);
}

}  // namespace tandem
