#include "server/jobs/model_artifact.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "server/store/records.h"

namespace tandem {
namespace {

constexpr char kEnding[] = ".safetensors";
constexpr char kCheckpointModel[] = "model-";

}  // namespace

bool StaysInFolder(const std::string& artifact) {
  if (artifact.empty() || artifact.front() == '/') return false;
  for (absl::string_view part : absl::StrSplit(artifact, '/')) {
    if (part == "..") return false;
  }
  return true;
}

absl::StatusOr<ModelFile> FindModelArtifact(const v1::Job& job, const std::string& artifact) {
  const std::string wanted = artifact.empty() ? kModelFile : artifact;
  std::vector<std::string> models;
  for (const v1::Artifact& candidate : job.artifacts()) {
    if (!absl::EndsWith(candidate.name(), kEnding) || !StaysInFolder(candidate.name())) continue;
    if (candidate.name() == wanted) {
      return ModelFile{absl::StrCat(job.folder(), "/", wanted),
                       IsTerminal(job.state()) ? candidate.sha256() : ""};
    }
    models.push_back(candidate.name());
  }
  const std::string shown = absl::CHexEscape(wanted.substr(0, 80));
  // A running job may list another model, such as its best, before kModelFile.
  if (!IsTerminal(job.state()) && (models.empty() || wanted == kModelFile)) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "cannot use the model of ", job.name(),
            models.empty()
                ? ": it has none yet"
                : absl::StrCat(": it has no '", shown, "' yet, only ", absl::StrJoin(models, ", ")),
            "; wait until the job ends (tandem watch)",
            job.has_last_checkpoint() ? absl::StrCat(", or use the model of its newest checkpoint, ",
                                                     CheckpointModelName(job.last_checkpoint().step()))
                                      : "")),
        "NO_MODEL_YET");
  }
  return WithReason(
      absl::NotFoundError(absl::StrCat(
          "cannot use the model '", shown, "' of ", job.name(), ": it ",
          !models.empty() ? absl::StrCat("has ", absl::StrJoin(models, ", "))
          : job.has_last_checkpoint()
              ? absl::StrCat("ended without a model; its checkpoint of step ", job.last_checkpoint().step(),
                             " can be forked (tandem fork), or used as ",
                             CheckpointModelName(job.last_checkpoint().step()))
              : "ended without a model")),
      "ARTIFACT_NOT_FOUND");
}

std::string CheckpointModelName(int64_t step) { return absl::StrCat(kCheckpointModel, step, kEnding); }

std::optional<int64_t> StepOfCheckpointModel(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kCheckpointModel)) return std::nullopt;
  const absl::StatusOr<int64_t> step = StepOfCheckpointFile(absl::StrCat("checkpoint-", name));
  return step.ok() ? std::optional<int64_t>(*step) : std::nullopt;
}

absl::StatusOr<ModelFile> FindCheckpoint(const v1::Job& job, int64_t step) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                          ListCheckpointFiles(Env::Real(), job.folder()));
  const std::string wanted = CheckpointFileName(step);
  std::vector<int64_t> others;
  for (const std::string& file : files) {
    std::string path = absl::StrCat(job.folder(), "/", file);
    // A hijacked worker may have left a pipe, or a link to another job's file.
    std::error_code error;
    if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error))) continue;
    if (file == wanted) return ModelFile{std::move(path), ""};
    others.push_back(*StepOfCheckpointFile(file));
  }
  const std::string has = others.empty()
                              ? absl::StrCat("it has no checkpoint", IsTerminal(job.state()) ? "" : " yet")
                              : absl::StrCat("it has no checkpoint of step ", step,
                                             "; give one of the steps ", absl::StrJoin(others, ", "));
  return WithReason(absl::NotFoundError(absl::StrCat("cannot use the model '", CheckpointModelName(step),
                                                     "' of ", job.name(), ": ", has)),
                    "CHECKPOINT_NOT_FOUND");
}

absl::StatusOr<ModelFile> FindModel(const v1::Job& job, const std::string& artifact) {
  const std::optional<int64_t> step = StepOfCheckpointModel(artifact);
  if (step.has_value()) return FindCheckpoint(job, *step);
  absl::StatusOr<ModelFile> model = FindModelArtifact(job, artifact);
  const absl::StatusOr<int64_t> checkpoint = StepOfCheckpointFile(artifact);
  if (model.ok() || !checkpoint.ok() || !FindCheckpoint(job, *checkpoint).ok()) return model;
  return WithReason(absl::NotFoundError(absl::StrCat("cannot use the model '", artifact, "' of ", job.name(),
                                                     ": it is a checkpoint; use its model, ",
                                                     CheckpointModelName(*checkpoint))),
                    "ARTIFACT_NOT_FOUND");
}

}  // namespace tandem
