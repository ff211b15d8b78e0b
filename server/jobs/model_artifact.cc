#include "server/jobs/model_artifact.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/error_reason.h"
#include "server/store/records.h"

namespace tandem {
namespace {

constexpr char kEnding[] = ".safetensors";

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
  if (!IsTerminal(job.state()) && models.empty()) {
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat("cannot use the model of ", job.name(),
                                       ": it has none yet; wait until the job ends (tandem watch)")),
                      "NO_MODEL_YET");
  }
  return WithReason(absl::NotFoundError(absl::StrCat(
                        "cannot use the model '", shown, "' of ", job.name(), ": it ",
                        !models.empty() ? absl::StrCat("has ", absl::StrJoin(models, ", "))
                        : job.has_last_checkpoint()
                            ? absl::StrCat("ended without a model; its checkpoint of step ",
                                           job.last_checkpoint().step(), " can be forked (tandem fork)")
                            : "ended without a model")),
                    "ARTIFACT_NOT_FOUND");
}

}  // namespace tandem
