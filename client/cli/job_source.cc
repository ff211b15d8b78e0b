#include "client/cli/job_source.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/upload_display.h"
#include "client/lib/status_details.h"
#include "client/lib/upload_plan.h"

namespace tandem::cli {
namespace {

// Returns whether --set gave the field, or an outer field.
bool IsOverridden(const JobSource& source, absl::string_view path) {
  for (const std::string& assignment : source.overrides) {
    absl::string_view rest = path;
    const absl::string_view set =
        absl::StripAsciiWhitespace(absl::string_view(assignment).substr(0, assignment.find('=')));
    if (absl::ConsumePrefix(&rest, set) && (rest.empty() || rest[0] == '.' || rest[0] == '[')) return true;
  }
  return false;
}

// Returns the wrong field of a right job that this daemon cannot run. The message then begins with the field,
// such as "spec.replicas.count: asks for".
std::vector<client::FieldViolation> FieldAtFault(const absl::Status& status) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(status.message(), absl::MaxSplits(": ", 1));
  if (!absl::IsFailedPrecondition(status) || !absl::StartsWith(parts.first, "spec.") ||
      absl::StrContains(parts.first, ' ')) {
    return {};
  }
  return {{std::string(parts.first), std::string(parts.second)}};
}

}  // namespace

void AddChanges(Command command, JobSource& source) {
  command
      .AddOption("--set", source.overrides,
                 "Change a field: PATH=VALUE, such as training.epochs=1 or model.layers[0].conv2d.filters=8")
      .ValueName("PATH=VALUE")
      .OneValueEach();
  AddOn(command, source.on);
  command
      .AddOption("--weights", source.weights,
                 "Start from the weights in this safetensors file (initial_weights): upload a file of this "
                 "machine, or have the daemon fetch a URL")
      .ValueName("FILE|URL");
}

void AddOn(Command command, std::string& on) {
  command.AddOption("--on", on, "Train on this kind of cluster instead of the daemon's machine: slurm or ssh")
      .ValueName("CLUSTER");
}

bool CheckOn(Session& session, const std::string& on) {
  if (on.empty() || on == "slurm" || on == "ssh") return true;
  session.terminal().Err(
      Printable(absl::StrCat("--on: is \"", on, "\"; the kinds of clusters are slurm and ssh\n")));
  return false;
}

void ApplyOn(const std::string& on, v1::JobSpec* spec) {
  if (on == "slurm") spec->mutable_cluster()->mutable_slurm();
  if (on == "ssh") spec->mutable_cluster()->mutable_ssh();
}

bool MayTakeWeights(Session& session, const std::string& weights, const std::string& name,
                    const v1::JobSpec& spec) {
  const v1::InitialWeights& given = spec.initial_weights();
  if (weights.empty() || given.source_case() == v1::InitialWeights::SOURCE_NOT_SET) return true;
  session.terminal().Err(
      Printable(absl::StrCat("--weights: is ", weights, ", but ", name, " has initial_weights.",
                             given.has_file() ? absl::StrCat("file, ", given.file())
                                              : absl::StrCat("artifact, of ", given.artifact().job()),
                             "; give only one of them\n")));
  return false;
}

int UploadWeights(Session& session, client::Client& client, const std::string& weights, v1::JobSpec* spec) {
  if (weights.empty()) return kSucceeded;
  if (client::IsUrl(weights)) {
    // The daemon fetches it.
    spec->mutable_initial_weights()->set_file(weights);
    return kSucceeded;
  }
  absl::StatusOr<client::UploadPlan> plan = client::PlanFileUpload(weights);
  if (!plan.ok()) {
    return session.Fail(
        absl::Status(plan.status().code(), absl::StrCat("--weights: ", plan.status().message())));
  }
  if (absl::Status status = ComputeDigests(session, *plan); !status.ok()) return FailStopped(session, status);
  const absl::StatusOr<v1::Upload> upload = UploadFiles(session, client, *plan);
  if (!upload.ok()) return FailStopped(session, upload.status());
  spec->mutable_initial_weights()->set_file(absl::StrCat(upload->name(), "/", plan->files[0].path));
  return kSucceeded;
}

absl::optional<client::JobFile> ReadJob(Session& session, const JobSource& source) {
  if (!CheckOn(session, source.on)) return absl::nullopt;
  absl::StatusOr<client::JobFile> file = client::ReadJobFile(source.file);
  if (!file.ok()) {
    session.terminal().Err(absl::StrCat(file.status().message(), "\n"));
    return absl::nullopt;
  }
  if (!ApplyOverrides(session, source, &file->spec)) return absl::nullopt;
  if (!MayTakeWeights(session, source.weights, file->name, file->spec)) return absl::nullopt;
  ApplyOn(source.on, &file->spec);
  return *std::move(file);
}

bool ApplyOverrides(Session& session, const JobSource& source, v1::JobSpec* spec) {
  for (const std::string& assignment : source.overrides) {
    const absl::Status status = ApplyOverride(assignment, spec);
    if (status.ok()) continue;
    for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      session.terminal().Err(absl::StrCat("--set: ", line, "\n"));
    }
    return false;
  }
  return true;
}

int FailJob(Session& session, const JobSource& source, const client::JobFile& file,
            const absl::Status& status) {
  std::vector<client::FieldViolation> violations = client::FieldViolations(status);
  if (violations.empty()) violations = FieldAtFault(status);
  if (violations.empty()) return session.Fail(status);
  for (const client::FieldViolation& violation : violations) {
    const absl::string_view path = absl::StripPrefix(violation.field, "spec.");
    session.terminal().Err(
        Printable(absl::StrCat(!source.weights.empty() && path == "initial_weights.file" ? "--weights"
                               : IsOverridden(source, path) ? absl::StrCat("--set: ", path)
                                                            : client::DescribeField(file, violation.field),
                               ": ", violation.description, "\n")));
  }
  return ExitCodeOf(status);
}

}  // namespace tandem::cli
