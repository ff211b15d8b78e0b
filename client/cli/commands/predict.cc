#include <algorithm>
#include <deque>
#include <iterator>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/predict_inputs.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/stream_notes.h"
#include "client/cli/table.h"
#include "client/lib/status_details.h"

namespace tandem::cli {
namespace {

// The daemon takes at most 12 MiB in a call. The last file may make a call somewhat larger than this number.
constexpr size_t kCallBytes = 4 << 20;
constexpr int kCallInputs = 1000;
// PredictOptions::top_k if the option is not given.
constexpr int kUnsetTopK = -1;

struct PredictOptions {
  std::string job;
  std::vector<std::string> inputs;
  std::string artifact;
  int top_k = kUnsetTopK;
  bool outputs = false;
  bool csv = false;
};

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

// Returns a CSV field (RFC 4180).
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Predictions as a CSV table with all digits. Holds only the table's text, because a table may have millions
// of rows. A network's output has a column for each number.
class CsvText {
 public:
  // Appends the predictions of a call. The first call chooses the columns: the predictions of a model have
  // equal numbers of classes and outputs.
  void Add(const std::vector<v1::Prediction>& predictions) {
    if (text_.empty()) Begin(predictions);
    for (const v1::Prediction& prediction : predictions) {
      absl::StrAppend(&text_, CsvField(prediction.input()), ",", prediction.sample());
      for (int i = 0; i < classes_; ++i) {
        if (i >= prediction.classes_size()) {
          text_ += ",,";
          continue;
        }
        const v1::ClassScore& score = prediction.classes(i);
        absl::StrAppend(&text_, ",",
                        score.name().empty() ? absl::StrCat(score.index()) : CsvField(score.name()), ",",
                        absl::StrFormat("%.17g", score.probability()));
      }
      for (int i = 0; i < outputs_; ++i) {
        text_ += ",";
        if (i < prediction.outputs_size()) absl::StrAppendFormat(&text_, "%.9g", prediction.outputs(i));
      }
      text_ += "\n";
    }
  }

  const std::string& text() const { return text_; }

 private:
  void Begin(const std::vector<v1::Prediction>& predictions) {
    for (const v1::Prediction& prediction : predictions) {
      classes_ = std::max(classes_, prediction.classes_size());
      outputs_ = std::max(outputs_, prediction.outputs_size());
    }
    text_ = "input,sample";
    for (int i = 0; i < classes_; ++i) {
      const std::string rank = i == 0 ? "" : absl::StrCat("_", i + 1);
      absl::StrAppend(&text_, ",class", rank, ",probability", rank);
    }
    for (int i = 0; i < outputs_; ++i) absl::StrAppend(&text_, ",output_", i);
    text_ += "\n";
  }

  int classes_ = 0;
  int outputs_ = 0;
  std::string text_;
};

// Deals the inputs to calls, in order. Reads a file when a call has room for it.
class InputCalls {
 public:
  // `sample_elements` is as in ReadPredictInput.
  InputCalls(std::vector<std::string> files, int64_t sample_elements)
      : files_(std::move(files)), sample_elements_(sample_elements) {}

  bool HasMore() const { return next_ < files_.size() || !parts_.empty(); }

  // Adds the inputs of the next call to `request`. Returns the last of them; a part of a large file is the
  // only one. HasMore must be true. Errors are those of ReadPredictInput.
  absl::StatusOr<InputPart> Fill(v1::PredictRequest* request) {
    InputPart part;
    for (size_t bytes = 0; bytes < kCallBytes && request->inputs_size() < kCallInputs && HasMore();) {
      if (parts_.empty()) {
        absl::StatusOr<std::vector<InputPart>> read = ReadPredictInput(files_[next_++], sample_elements_);
        if (!read.ok()) return read.status();
        std::move(read->begin(), read->end(), std::back_inserter(parts_));
      }
      if (parts_.front().is_alone && request->inputs_size() > 0) break;
      part = std::move(parts_.front());
      parts_.pop_front();
      bytes += part.input.ByteSizeLong();
      *request->add_inputs() = part.input;
      if (part.is_alone) break;
    }
    return part;
  }

 private:
  const std::vector<std::string> files_;
  const int64_t sample_elements_;
  size_t next_ = 0;
  std::deque<InputPart> parts_;  // Of files that were read.
};

// Returns a call's predictions. Sets their samples' numbers in the whole file if the call has a part of one.
// Returns an exit code if the call failed, after saying why.
std::variant<std::vector<v1::Prediction>, int> CallPredict(Session& session, client::Client& client,
                                                           v1::PredictRequest request, const InputPart& part,
                                                           TableNumbers& numbers) {
  Terminal& terminal = session.terminal();
  const bool continues_table = part.table_rows > 0 && !part.begins_table;
  const int64_t first_sample = continues_table ? numbers.samples() : part.first_sample;
  // The place of a part after the first, for messages.
  const std::string place =
      first_sample > 0 ? absl::StrCat(part.input.label(), " from sample ", first_sample) : "";
  StreamNotes observer(terminal);
  std::vector<v1::Prediction> answers;
  absl::Status status = client.Predict(request, observer, [&](const v1::PredictResponse& response) {
    for (const std::string& notice : response.notices()) {
      terminal.Err(Printable(absl::StrCat("notice: ", place, place.empty() ? "" : ": ", notice, "\n")));
    }
    answers.insert(answers.end(), response.predictions().begin(), response.predictions().end());
  });
  if (absl::IsCancelled(status) && terminal.Interrupted()) return kDetached;
  if (!status.ok()) {
    if (!place.empty()) request.mutable_inputs(0)->set_label(place);
    return FailInputs(session, request, status);
  }
  if (part.table_rows > 0) {
    status = numbers.Number(part, answers);
    if (!status.ok()) return session.Fail(status);
  } else if (first_sample > 0) {
    for (v1::Prediction& answer : answers) answer.set_sample(first_sample + answer.sample());
  }
  return answers;
}

int RunPredict(Session& session, const PredictOptions& options) {
  if (options.csv && session.structured()) {
    return session.Fail(
        absl::InvalidArgumentError("cannot print predictions: --csv and --output are given; give one"));
  }
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  Terminal& terminal = session.terminal();
  std::vector<std::string> notes;
  absl::StatusOr<std::vector<std::string>> files = PredictFiles(options.inputs, notes);
  if (!files.ok()) return session.Fail(files.status());
  for (const std::string& note : notes) terminal.Err(Printable(absl::StrCat(note, "\n")));
  int64_t sample_elements = 1;
  for (const int64_t extent : job->spec().model().input().shape()) sample_elements *= extent;
  const int default_top_k = options.csv ? 1 : 5;
  v1::PredictRequest empty;
  empty.set_name(job->name());
  empty.set_artifact(options.artifact);
  empty.set_top_k(options.top_k == kUnsetTopK ? default_top_k : options.top_k);
  // Without classes and outputs there would be nothing to show.
  if (options.outputs || empty.top_k() == 0) empty.set_outputs(true);

  InputCalls calls(*std::move(files), sample_elements);
  TableNumbers numbers;
  CsvText csv;
  std::vector<v1::Prediction> predictions;  // If not as CSV.
  while (calls.HasMore()) {
    v1::PredictRequest request = empty;
    const absl::StatusOr<InputPart> part = calls.Fill(&request);
    if (!part.ok()) return session.Fail(part.status());
    auto answered = CallPredict(session, **client, std::move(request), *part, numbers);
    if (const int* const exit_code = std::get_if<int>(&answered)) return *exit_code;
    auto& answers = std::get<std::vector<v1::Prediction>>(answered);
    for (v1::Prediction& answer : answers) session.MakeShowable(&answer);
    if (options.csv) {
      csv.Add(answers);
    } else {
      std::move(answers.begin(), answers.end(), std::back_inserter(predictions));
    }
  }
  terminal.Out(options.csv                                     ? csv.text()
               : session.options.output == OutputFormat::kJson ? ToJson(Pointers(predictions), Zeros::kShown)
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
      .AddOption(
          "-k,--top-k", options->top_k,
          "The number of most probable classes; 0: the whole output instead (default: 5; with --csv: 1)")
      .ValueName("N")
      .Range(0, 1000);
  command.AddFlag("--outputs", options->outputs, "Also show the network's whole output");
  command.AddFlag("--csv", options->csv, "Print a CSV table with all digits, a sample in each row");
  command
      .AddOption("--artifact", options->artifact,
                 "The job's model (default: model.safetensors); model-STEP.safetensors: that of a checkpoint")
      .ValueName("NAME");
  command.Action([options, &session, &exit_code] { exit_code = RunPredict(session, *options); });
}

}  // namespace tandem::cli
