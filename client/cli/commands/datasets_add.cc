#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/datasets.h"
#include "client/cli/commands/datasets_fetch.h"
#include "client/cli/dataset_options.h"
#include "client/cli/format.h"
#include "client/cli/session.h"
#include "client/cli/upload_display.h"
#include "client/lib/status_details.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"

namespace tandem::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  tandem datasets add houses houses.csv --set csv.target_columns=price --upload
  tandem datasets add flowers --image-folder flowers/train --validation flowers/valid --upload
  tandem datasets add flowers flowers.yaml --upload
      with relative paths looked for beside the file)";

struct DatasetsAddOptions {
  std::string name;
  DatasetOptions data;
  std::string description;
  bool known = false;
  bool upload = false;
  bool check = false;
};

// Returns advice for a path that is right on this machine and that the daemon refuses.
std::string AdviceOnFiles(const DatasetsAddOptions& options, v1::DatasetSpec spec) {
  if (options.upload) return "";
  for (const client::NamedPath& path : client::SourcePaths(&spec)) {
    std::error_code ignored;
    const std::filesystem::path here = std::filesystem::path(options.data.Folder()) / *path.path;
    if (client::IsUrl(*path.path) || !std::filesystem::exists(here, ignored)) continue;
    return absl::StrCat("Paths are paths of the daemon's machine, but ", here.string(),
                        " is on this machine. --upload sends the files to the daemon",
                        options.check ? "; --check reads files of its data folders alone" : "", ".\n");
  }
  return "";
}

// Prints the daemon's problems, by the names of the spec's fields.
int FailAdd(Session& session, const DatasetsAddOptions& options, const v1::DatasetSpec& spec,
            const absl::Status& status) {
  const std::vector<client::FieldViolation> violations = client::FieldViolations(status);
  if (violations.empty()) return FailStopped(session, status);
  const std::string file = options.data.file.empty() ? "" : absl::StrCat(options.data.file, ": ");
  for (const client::FieldViolation& violation : violations) {
    absl::string_view field = violation.field;
    const bool in_spec = absl::ConsumePrefix(&field, "dataset.spec");
    absl::ConsumePrefix(&field, ".");
    if (field == "dataset_id") field = "the name";
    if (field == "dataset.description") field = "--description";
    session.terminal().Err(Printable(absl::StrCat("tandem: ", in_spec ? file : "", field,
                                                  field.empty() ? "" : ": ", violation.description, "\n")));
  }
  // Advice on paths does not mend a file's content.
  const bool is_about_paths =
      std::any_of(violations.begin(), violations.end(), [](const client::FieldViolation& violation) {
        return absl::StrContains(violation.description, "data folder") ||
               absl::StrContains(violation.description, "the daemon can read");
      });
  if (is_about_paths) session.terminal().Err(AdviceOnFiles(options, spec));
  return ExitCodeOf(status);
}

// The same command again, as after a lost answer, is the same request.
absl::StatusOr<std::string> RequestId(const v1::CreateDatasetRequest& request) {
  TANDEM_ASSIGN_OR_RETURN(const std::string sum, Sha256Of(request.SerializeAsString()));
  return absl::StrCat("cli-", sum);
}

absl::Status NameTaken(const std::string& name) {
  return absl::AlreadyExistsError(absl::StrCat(
      "cannot add ", name,
      ": a data set of this name exists; give another name, or remove it: tandem datasets remove ", name));
}

// Returns the data set with this name, if there is one.
absl::StatusOr<absl::optional<v1::Dataset>> FindNamed(client::Client& client, const std::string& name) {
  absl::StatusOr<std::vector<v1::Dataset>> datasets = client.ListDatasets();
  if (!datasets.ok()) return datasets.status();
  for (v1::Dataset& dataset : *datasets) {
    // A data set without an origin is only known by name; its files are not there.
    if (ShortName(dataset.name()) == name && dataset.origin() != v1::DATASET_ORIGIN_UNSPECIFIED) {
      return absl::optional<v1::Dataset>(std::move(dataset));
    }
  }
  return absl::optional<v1::Dataset>();
}

void SayAdded(Session& session, const v1::Dataset& dataset, bool checked) {
  if (session.structured()) {
    session.Print(dataset);
    return;
  }
  const std::string id = ShortName(dataset.name());
  std::vector<std::string> facts;
  if (dataset.shape_size() > 0)
    facts.push_back(absl::StrCat("samples ", absl::StrJoin(dataset.shape(), "x")));
  if (dataset.classes() > 0) facts.push_back(absl::StrCat("classes ", FormatCount(dataset.classes())));
  facts.push_back(absl::StrCat("training ", FormatCount(dataset.train_samples())));
  facts.push_back(absl::StrCat("validation ", FormatCount(dataset.validation_samples())));
  session.terminal().Out(absl::StrCat(checked ? "can be added: " : "added ", session.style().Bold(id), "  (",
                                      absl::StrJoin(facts, ", "), ")\n"));
  for (const std::string& notice : dataset.notices()) session.terminal().Out(absl::StrCat(notice, "\n"));
  if (!checked) session.terminal().Out(absl::StrCat("in a job file:  dataset: {name: ", id, "}\n"));
}

// Checks the parts of a request that do not depend on files.
absl::Status CheckWithoutFiles(client::Client& client, v1::CreateDatasetRequest request) {
  request.set_validate_only(true);
  const absl::Status status = client.CreateDataset(request).status();
  for (const client::FieldViolation& violation : client::FieldViolations(status)) {
    if (violation.field == "dataset_id" || violation.field == "dataset.description") return status;
  }
  return absl::OkStatus();
}

// Registers the data set. The daemon reads all of it.
absl::StatusOr<v1::Dataset> Register(Session& session, client::Client& client,
                                     const v1::CreateDatasetRequest& request) {
  Terminal& terminal = session.terminal();
  terminal.CatchInterrupt();
  const bool live = terminal.Interactive() && !session.structured();
  if (live) terminal.Out("the daemon reads the data, which may take a while");
  absl::StatusOr<v1::Dataset> dataset = client.CreateDataset(request);
  if (live) terminal.Out("\r\x1b[K");
  if (absl::IsCancelled(dataset.status()) && terminal.Interrupted()) {
    terminal.Err(request.validate_only() ? "tandem: stopped before the daemon had read the data\n"
                                         : "tandem: stopped; the daemon may still add the data set; `tandem "
                                           "datasets` shows it, and the same command waits for it again\n");
  }
  return dataset;
}

absl::StatusOr<v1::Dataset> Create(Session& session, client::Client& client, v1::CreateDatasetRequest request,
                                   client::UploadPlan& plan) {
  if (!plan.files.empty()) {
    const std::string& name = request.dataset_id();
    // Checks the name before minutes of upload.
    absl::StatusOr<absl::optional<v1::Dataset>> named = FindNamed(client, name);
    if (!named.ok()) return named.status();
    const bool may_be_same = named->has_value() && !(*named)->manifest_sha256().empty();
    if (named->has_value() && !may_be_same) return NameTaken(name);
    if (!named->has_value()) {
      if (absl::Status status = CheckWithoutFiles(client, request); !status.ok()) return status;
    }
    if (absl::Status status = ComputeDigests(session, plan); !status.ok()) return status;
    if (may_be_same) {
      // A repeated command after a lost answer finds the same data set.
      const bool same = (*named)->manifest_sha256() == plan.manifest_sha256 &&
                        (*named)->spec().SerializeAsString() == request.dataset().spec().SerializeAsString();
      if (same) return **std::move(named);
      return NameTaken(name);
    }
    absl::StatusOr<v1::Upload> upload = UploadFiles(session, client, plan);
    if (!upload.ok()) return upload.status();
    request.set_upload(upload->name());
  }
  if (!request.validate_only()) {
    TANDEM_ASSIGN_OR_RETURN(*request.mutable_request_id(), RequestId(request));
  }
  return Register(session, client, request);
}

int RunDatasetsAdd(Session& session, const DatasetsAddOptions& options) {
  if (options.known) {
    if (!options.data.IsEmpty()) {
      return session.Fail(
          absl::InvalidArgumentError("cannot use --known with files: a public data set has its own files; "
                                     "leave out the files or --known"));
    }
    return FetchKnownDataset(session, options.name);
  }
  absl::StatusOr<v1::DatasetSpec> spec = options.data.Read();
  if (!spec.ok()) return session.Fail(spec.status());
  const v1::DatasetSpec as_written = *spec;
  if (const std::string note = options.data.Note(); !note.empty()) UploadNote(session, Printable(note));
  client::UploadPlan plan;
  if (options.upload) {
    absl::StatusOr<client::UploadPlan> planned = client::PlanUpload(options.data.Folder(), &*spec);
    if (!planned.ok()) return session.Fail(planned.status());
    plan = *std::move(planned);
  }
  v1::CreateDatasetRequest request;
  request.set_dataset_id(options.name);
  request.mutable_dataset()->set_description(options.description);
  *request.mutable_dataset()->mutable_spec() = *std::move(spec);
  request.set_validate_only(options.check);
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Dataset> dataset = Create(session, **client, std::move(request), plan);
  if (!dataset.ok()) return FailAdd(session, options, as_written, dataset.status());
  session.MakeShowable(&*dataset);
  // The data set exists from an earlier command, and its files were lost since.
  if (!dataset->problem().empty()) {
    return session.Fail(absl::FailedPreconditionError(
        absl::StrCat("cannot use the data set ", options.name, ": ", dataset->problem(),
                     "; remove it (`tandem datasets remove ", options.name, "`) and add it again")));
  }
  SayAdded(session, *dataset, options.check);
  return kSucceeded;
}

}  // namespace

void AddDatasetsAdd(Command datasets, Session& session, int& exit_code) {
  auto options = std::make_shared<DatasetsAddOptions>();
  const Command command = datasets.AddCommand("add", "Register a data set under a name, for jobs");
  command.Footer(kExamples);
  command.AddOption("NAME", options->name, "The data set's name: small letters, digits, hyphens").Required();
  options->data.AddTo(command);
  command.AddOption("--description", options->description, "One sentence about the data set")
      .ValueName("TEXT");
  const Option upload =
      command.AddFlag("--upload", options->upload,
                      "Send files of this machine; without this option the daemon reads files in its data "
                      "folders. After a break, the same command continues");
  command.AddFlag("--check", options->check, "Check the data set, and add nothing").Excludes(upload);
  command
      .AddFlag("--known", options->known,
               "NAME is a public data set, such as mnist, for the daemon to download, as `tandem datasets "
               "fetch` does")
      .Excludes(upload);
  command.Action([options, &session, &exit_code] { exit_code = RunDatasetsAdd(session, *options); });
}

}  // namespace tandem::cli
