#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/stream_notes.h"
#include "client/cli/table.h"
#include "client/lib/file_reading.h"
#include "client/lib/npy_pieces.h"
#include "client/lib/status_details.h"
#include "proto/data_folder/data_folder.h"

namespace tandem::cli {
namespace {

// The daemon takes at most 12 MiB in a call. The last file may make a call somewhat larger than this number.
constexpr size_t kCallBytes = 4 << 20;
constexpr size_t kLargestInput = 8 << 20;
// Kinds of skipped files that are named.
constexpr size_t kShownEndings = 5;
constexpr int kCallInputs = 1000;
constexpr absl::string_view kNpyMagic = "\x93NUMPY";
// An NPY file above kLargestInput is sent in several calls.
constexpr size_t kLargestNpy = size_t{1} << 30;
constexpr int64_t kCallSamples = 10'000;

struct PredictOptions {
  std::string job;
  std::vector<std::string> inputs;
  std::string artifact;
  int top_k = 5;
  bool outputs = false;
};

// Returns the inputs, with a folder's pictures in place of the folder. Adds a sentence to `notes` about each
// folder with files of other formats.
absl::StatusOr<std::vector<std::string>> InputFiles(const std::vector<std::string>& inputs,
                                                    std::vector<std::string>& notes) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(input, ignored)) {
      files.push_back(input);
      continue;
    }
    std::vector<std::string> pictures;
    std::map<std::string, int> endings;
    int others = 0;
    const absl::Status status = WalkDataFolder(input, [&](const std::filesystem::path& path, bool is_folder) {
      if (is_folder) return;
      if (IsPictureName(path.filename().string())) {
        pictures.push_back(path.string());
        return;
      }
      ++others;
      const std::string ending = path.extension().string();
      ++endings[ending.empty() ? "without an ending" : ending];
    });
    if (!status.ok()) return status;
    if (pictures.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(input, " has no picture: no file ending in .jpg, .png, .webp, .bmp, .tiff or .gif"));
    }
    if (others > 0) {
      std::vector<std::string> parts;
      for (const auto& [ending, count] : endings) {
        if (parts.size() < kShownEndings) parts.push_back(absl::StrCat(count, " ", ending));
      }
      if (endings.size() > kShownEndings) parts.push_back("others");
      notes.push_back(absl::StrCat(input, ": ", others, others == 1 ? " file" : " files",
                                   " of other formats skipped: ", absl::StrJoin(parts, ", ")));
    }
    std::sort(pictures.begin(), pictures.end());
    files.insert(files.end(), std::make_move_iterator(pictures.begin()),
                 std::make_move_iterator(pictures.end()));
  }
  return files;
}

// A file, or a part of a large NPY file.
struct Part {
  v1::PredictInput input;
  // The number of the part's first sample in the file.
  int64_t first_sample = 0;
  // A part of a file has a call of its own, so that its predictions are known.
  bool alone = false;
};

// Reads an NPY file that is too large for a call. `too_large` is the error of another file.
absl::StatusOr<std::vector<Part>> ReadLargeNpy(const std::string& path, int64_t sample_elements,
                                               const absl::Status& too_large) {
  std::string magic(kNpyMagic.size(), '\0');
  std::ifstream(path).read(magic.data(), magic.size());
  if (path == "-" || magic != kNpyMagic) return too_large;
  const absl::StatusOr<std::string> content = client::ReadWholeFile(path, kLargestNpy);
  if (!content.ok()) return content.status();
  absl::StatusOr<std::vector<client::NpyPiece>> pieces =
      client::CutNpy(*content, sample_elements, kCallBytes, kCallSamples);
  if (!pieces.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot cut ", path, ", which has more than ",
                                                   kLargestInput, " bytes: ", pieces.status().message()));
  }
  std::vector<Part> parts;
  for (client::NpyPiece& piece : *pieces) {
    Part& part = parts.emplace_back();
    part.input.set_label(path);
    part.input.set_npy(std::move(piece.content));
    part.first_sample = piece.first_sample;
    part.alone = true;
  }
  return parts;
}

// Reads a file as an input, or as several inputs if it is a large array. The content chooses the format.
// `sample_elements` is the number of elements of the model's samples.
absl::StatusOr<std::vector<Part>> ReadInput(const std::string& path, int64_t sample_elements) {
  absl::StatusOr<std::string> content = client::ReadWholeFile(path, kLargestInput);
  if (absl::IsResourceExhausted(content.status()))
    return ReadLargeNpy(path, sample_elements, content.status());
  if (!content.ok()) return content.status();
  v1::PredictInput input;
  input.set_label(path);
  if (IsPictureContent(*content)) {
    input.set_image(*std::move(content));
  } else if (absl::StartsWith(*content, kNpyMagic)) {
    input.set_npy(*std::move(content));
  } else if (absl::StrContains(*content, '\0') || IsPictureName(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot predict ", path,
        ": it is neither a picture (JPEG, PNG, WebP, BMP, TIFF, GIF), nor an NPY file, nor a CSV "
        "table; convert it"));
  } else {
    input.set_csv(*std::move(content));
  }
  return std::vector<Part>{{std::move(input)}};
}

std::string ClassName(const v1::ClassScore& score) {
  return score.name().empty() ? absl::StrCat("class ", score.index()) : score.name();
}

std::string Percent(double probability) { return absl::StrFormat("%.1f%%", 100 * probability); }

std::string Outputs(const v1::Prediction& prediction) {
  return absl::StrJoin(prediction.outputs(), " ", [](std::string* text, double output) {
    absl::StrAppend(text, FormatSetting(output));
  });
}

std::string RenderTable(const std::vector<v1::Prediction>& predictions, const Style& style) {
  const bool several = std::any_of(predictions.begin(), predictions.end(),
                                   [](const v1::Prediction& prediction) { return prediction.sample() > 0; });
  const bool classes =
      std::any_of(predictions.begin(), predictions.end(),
                  [](const v1::Prediction& prediction) { return !prediction.classes().empty(); });
  const bool outputs =
      std::any_of(predictions.begin(), predictions.end(),
                  [](const v1::Prediction& prediction) { return !prediction.outputs().empty(); });
  std::vector<Table::Column> columns = {{"INPUT"}};
  if (several) columns.push_back({"SAMPLE", true});
  if (classes) columns.insert(columns.end(), {{"CLASS"}, {"PROBABILITY", true}, {"THEN"}});
  if (outputs) columns.push_back({"OUTPUT"});
  Table table(columns);
  for (const v1::Prediction& prediction : predictions) {
    std::vector<std::string> row = {prediction.input()};
    if (several) row.push_back(absl::StrCat(prediction.sample()));
    if (classes) {
      std::vector<std::string> others;
      for (int i = 1; i < prediction.classes_size(); ++i) {
        others.push_back(absl::StrCat(ClassName(prediction.classes(i)), " ",
                                      Percent(prediction.classes(i).probability())));
      }
      const bool any = !prediction.classes().empty();
      row.push_back(any ? ClassName(prediction.classes(0)) : "");
      row.push_back(any ? Percent(prediction.classes(0).probability()) : "");
      row.push_back(absl::StrJoin(others, ", "));
    }
    if (outputs) row.push_back(Outputs(prediction));
    table.AddRow(std::move(row));
  }
  return table.Render(style);
}

// Prints the daemon's problems with inputs, by their files' names.
int FailInputs(Session& session, const v1::PredictRequest& request, const absl::Status& status) {
  const std::vector<client::FieldViolation> violations = client::FieldViolations(status);
  if (violations.empty()) return session.Fail(status);
  for (const client::FieldViolation& violation : violations) {
    std::string field = violation.field;
    for (int i = 0; i < request.inputs_size(); ++i) {
      const std::string path = absl::StrCat("inputs[", i, "]");
      if (field == path || absl::StartsWith(field, path + ".")) field = request.inputs(i).label();
    }
    session.terminal().Err(Printable(absl::StrCat(field, ": ", violation.description, "\n")));
  }
  return ExitCodeOf(status);
}

int RunPredict(Session& session, const PredictOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  Terminal& terminal = session.terminal();
  StreamNotes observer(terminal);
  std::vector<v1::Prediction> predictions;
  std::vector<std::string> notes;
  const absl::StatusOr<std::vector<std::string>> inputs = InputFiles(options.inputs, notes);
  if (!inputs.ok()) return session.Fail(inputs.status());
  for (const std::string& note : notes) terminal.Err(Printable(absl::StrCat(note, "\n")));
  int64_t sample_elements = 1;
  for (const int64_t extent : job->spec().model().input().shape()) sample_elements *= extent;
  // Parts that wait for a call.
  std::deque<Part> parts;
  for (size_t next = 0; next < inputs->size() || !parts.empty();) {
    v1::PredictRequest request;
    int64_t first_sample = 0;
    request.set_name(job->name());
    request.set_artifact(options.artifact);
    request.set_top_k(options.top_k);
    // Without classes and outputs there would be nothing to show.
    if (options.outputs || options.top_k == 0) request.set_outputs(true);
    for (size_t bytes = 0; bytes < kCallBytes && request.inputs_size() < kCallInputs;) {
      if (parts.empty()) {
        if (next == inputs->size()) break;
        absl::StatusOr<std::vector<Part>> read = ReadInput((*inputs)[next++], sample_elements);
        if (!read.ok()) return session.Fail(read.status());
        std::move(read->begin(), read->end(), std::back_inserter(parts));
      }
      const bool alone = parts.front().alone;
      if (alone && request.inputs_size() > 0) break;
      first_sample = parts.front().first_sample;
      bytes += parts.front().input.ByteSizeLong();
      *request.add_inputs() = std::move(parts.front().input);
      parts.pop_front();
      if (alone) break;
    }
    const absl::Status status =
        (*client)->Predict(request, observer, [&](const v1::PredictResponse& response) {
          for (const std::string& notice : response.notices()) {
            terminal.Err(Printable(absl::StrCat("notice: ", notice, "\n")));
          }
          for (const v1::Prediction& prediction : response.predictions()) {
            predictions.push_back(prediction);
            predictions.back().set_sample(first_sample + prediction.sample());
          }
        });
    if (absl::IsCancelled(status) && terminal.Interrupted()) return kDetached;
    if (!status.ok() && first_sample > 0) {
      request.mutable_inputs(0)->set_label(
          absl::StrCat(request.inputs(0).label(), " from sample ", first_sample));
    }
    if (!status.ok()) return FailInputs(session, request, status);
  }
  for (v1::Prediction& prediction : predictions) session.MakeShowable(&prediction);
  terminal.Out(session.options.output == OutputFormat::kJson ? ToJson(Pointers(predictions), Zeros::kShown)
               : session.structured() ? Structured(session.options.output, Pointers(predictions))
                                      : RenderTable(predictions, session.style()));
  return kSucceeded;
}

}  // namespace

void AddPredict(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<PredictOptions>();
  const Command command =
      app.AddCommand("predict", "Compute a model's predictions for pictures, NPY or CSV files");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  command
      .AddOption(
          "INPUT", options->inputs,
          "Picture, or folder of pictures at any depth; NPY file with a sample, or with several along a "
          "first dimension; CSV table with a sample in each row")
      .Required();
  command
      .AddOption("-k,--top-k", options->top_k,
                 "The number of most probable classes; 0: the whole output instead (default: 5)")
      .ValueName("N")
      .Range(0, 1000);
  command.AddFlag("--outputs", options->outputs, "Also show the network's whole output");
  command
      .AddOption("--artifact", options->artifact,
                 "The job's model (default: model.safetensors); model-STEP.safetensors: that of a checkpoint")
      .ValueName("NAME");
  command.Action([options, &session, &exit_code] { exit_code = RunPredict(session, *options); });
}

}  // namespace tandem::cli
