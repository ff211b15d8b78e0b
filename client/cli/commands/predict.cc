#include <deque>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/predict_inputs.h"
#include "client/cli/commands/prediction_table.h"
#include "client/cli/commands/sample_options.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/stream_notes.h"
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
  std::string dataset;
  std::string split;
  std::string artifact;
  int top_k = kUnsetTopK;
  bool outputs = false;
  bool csv = false;
};

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

// Predictions until they are printed.
class Shown {
 public:
  Shown(Session& session, bool csv) : session_(session), is_csv_(csv) {}

  void Add(std::vector<v1::Prediction> predictions) {
    for (v1::Prediction& prediction : predictions) session_.MakeShowable(&prediction);
    if (is_csv_) {
      csv_.Add(predictions);
    } else {
      std::move(predictions.begin(), predictions.end(), std::back_inserter(predictions_));
    }
  }

  void Print() {
    const OutputFormat format = session_.options.output;
    session_.terminal().Out(is_csv_                         ? csv_.text()
                            : format == OutputFormat::kJson ? ToJson(Pointers(predictions_), Zeros::kShown)
                            : session_.structured()         ? Structured(format, Pointers(predictions_))
                                                    : PredictionTable(predictions_, session_.style()));
  }

 private:
  Session& session_;
  const bool is_csv_;
  PredictionCsv csv_;
  std::vector<v1::Prediction> predictions_;  // If not as CSV.
};

// Adds the predictions for files. Returns an exit code.
int PredictInputs(Session& session, client::Client& client, const PredictOptions& options, const v1::Job& job,
                  const v1::PredictRequest& common, Shown& shown) {
  std::vector<std::string> notes;
  absl::StatusOr<std::vector<std::string>> files = PredictFiles(options.inputs, notes);
  if (!files.ok()) return session.Fail(files.status());
  for (const std::string& note : notes) session.terminal().Err(Printable(absl::StrCat(note, "\n")));
  int64_t sample_elements = 1;
  for (const int64_t extent : job.spec().model().input().shape()) sample_elements *= extent;
  InputCalls calls(*std::move(files), sample_elements);
  TableNumbers numbers;
  while (calls.HasMore()) {
    v1::PredictRequest request = common;
    const absl::StatusOr<InputPart> part = calls.Fill(&request);
    if (!part.ok()) return session.Fail(part.status());
    auto answered = CallPredict(session, client, std::move(request), *part, numbers);
    if (const int* const exit_code = std::get_if<int>(&answered)) return *exit_code;
    shown.Add(std::get<std::vector<v1::Prediction>>(std::move(answered)));
  }
  return kSucceeded;
}

// Adds the predictions for the samples of a data set. Returns an exit code.
int PredictDataset(Session& session, client::Client& client, const v1::PredictRequest& request,
                   Shown& shown) {
  Terminal& terminal = session.terminal();
  const bool live = terminal.Interactive() && !session.structured();
  const auto clear = [&] {
    if (live) terminal.Out("\r\x1b[K");
  };
  if (live) terminal.Out("the daemon opens the model and the samples");
  StreamNotes observer(terminal, [&](absl::string_view note) {
    clear();
    terminal.Err(absl::StrCat(note, "\n"));
  });
  int64_t samples = 0;
  const absl::Status status = client.Predict(request, observer, [&](const v1::PredictResponse& response) {
    clear();
    for (const std::string& notice : response.notices()) {
      terminal.Err(Printable(absl::StrCat("notice: ", notice, "\n")));
    }
    samples += response.predictions_size();
    shown.Add({response.predictions().begin(), response.predictions().end()});
    if (live) terminal.Out(absl::StrCat(FormatCount(samples), " samples"));
  });
  clear();
  if (absl::IsCancelled(status) && terminal.Interrupted()) return kDetached;
  return status.ok() ? kSucceeded : session.Fail(status);
}

absl::StatusOr<v1::PredictRequest> MakeRequest(const PredictOptions& options) {
  v1::PredictRequest request;
  request.set_artifact(options.artifact);
  const int default_top_k = options.csv ? 1 : 5;
  request.set_top_k(options.top_k == kUnsetTopK ? default_top_k : options.top_k);
  // Without classes and outputs there would be nothing to show.
  if (options.outputs || request.top_k() == 0) request.set_outputs(true);
  const absl::Status status = ReadSamples(options.dataset, options.split, &request);
  if (!status.ok()) return status;
  const bool has_dataset = !options.dataset.empty() || !options.split.empty();
  if (!has_dataset && options.inputs.empty()) {
    return absl::InvalidArgumentError(
        "cannot predict: there are no samples; give a file, or --dataset or --split");
  }
  if (has_dataset && !options.inputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot predict: --dataset or --split is given, and the file ", options.inputs[0],
                     "; give one of them"));
  }
  return request;
}

int RunPredict(Session& session, const PredictOptions& options) {
  if (options.csv && session.structured()) {
    return session.Fail(
        absl::InvalidArgumentError("cannot print predictions: --csv and --output are given; give one"));
  }
  absl::StatusOr<v1::PredictRequest> request = MakeRequest(options);
  if (!request.ok()) return session.Fail(request.status());
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  request->set_name(job->name());
  Shown shown(session, options.csv);
  const int exit_code = options.inputs.empty()
                            ? PredictDataset(session, **client, *request, shown)
                            : PredictInputs(session, **client, options, *job, *request, shown);
  if (exit_code == kSucceeded) shown.Print();
  return exit_code;
}

}  // namespace

void AddPredict(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<PredictOptions>();
  const Command command = app.AddCommand(
      "predict", "Compute a model's predictions for pictures, NPY or CSV files, or for a data set");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  command.AddOption(
      "INPUT", options->inputs,
      "Picture, or folder of pictures at any depth; NPY file with a sample, or with several along a "
      "first dimension; CSV table with a sample in each row");
  AddSampleOptions(command, options->dataset, options->split);
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
