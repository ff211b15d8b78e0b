#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/sample_options.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/printable.h"
#include "client/cli/stream_notes.h"
#include "client/cli/table.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

// A larger confusion matrix does not fit on a terminal.
constexpr int kShownClasses = 30;

struct EvaluateOptions {
  std::string job;
  std::string artifact;
  std::string dataset;
  std::string split;
  std::vector<std::string> metrics;
  int64_t batch_size = 0;
};

// Returns "loss 0.3012, accuracy 0.8912 over 10,000 samples".
std::string Describe(const v1::Evaluation& evaluation) {
  if (std::isnan(evaluation.loss()) && evaluation.metrics().empty()) {
    return absl::StrCat("no result: the job's loss ignores the labels of all ",
                        FormatCount(evaluation.samples()), " samples\n");
  }
  std::string text = absl::StrCat("loss ", FormatMeasure(evaluation.loss()));
  const std::map<std::string, double> metrics(evaluation.metrics().begin(), evaluation.metrics().end());
  for (const auto& [name, value] : metrics) absl::StrAppend(&text, ", ", name, " ", FormatMeasure(value));
  return absl::StrCat(text, " over ", FormatCount(evaluation.samples()), " samples\n");
}

// Returns the measures of each class and the confusion matrix, if requested.
std::string DescribeClasses(const v1::Evaluation& evaluation, const Style& style) {
  const v1::ClassificationReport& report = evaluation.classification();
  // Adds the class's name to a row. Adds nothing if the classes have no names.
  const auto add_name = [&report](int i, std::vector<std::string>* cells) {
    if (report.class_names().empty()) return;
    cells->push_back(i < report.class_names_size() ? report.class_names(i) : "-");
  };
  std::vector<Table::Column> first = {{"CLASS", true}};
  if (!report.class_names().empty()) first.push_back({"NAME"});
  std::string text;
  if (!report.classes().empty()) {
    std::vector<Table::Column> columns = first;
    for (const char* title : {"SAMPLES", "PRECISION", "RECALL", "F1", "AUC"})
      columns.push_back({title, true});
    Table table(columns);
    for (int i = 0; i < report.classes_size(); ++i) {
      const v1::ClassMeasures& one = report.classes(i);
      std::vector<std::string> cells = {absl::StrCat(i)};
      add_name(i, &cells);
      cells.insert(cells.end(),
                   {FormatCount(one.samples()), FormatMeasure(one.precision()), FormatMeasure(one.recall()),
                    FormatMeasure(one.f1()), one.has_auc() ? FormatMeasure(one.auc()) : "-"});
      table.AddRow(std::move(cells));
    }
    absl::StrAppend(&text, "\n", table.Render(style));
  }
  const v1::ConfusionMatrix& matrix = report.confusion_matrix();
  const int classes = static_cast<int>(matrix.classes());
  if (classes == 0 || matrix.counts_size() != int64_t{classes} * classes) return text;
  if (classes > kShownClasses) {
    return absl::StrCat(text, "\nthe confusion matrix of ", classes,
                        " classes is too large for a terminal; -o json prints it\n");
  }
  std::vector<Table::Column> columns = first;
  for (int i = 0; i < classes; ++i) columns.push_back({absl::StrCat(i), true});
  Table table(columns);
  for (int row = 0; row < classes; ++row) {
    std::vector<std::string> cells = {absl::StrCat(row)};
    add_name(row, &cells);
    for (int i = 0; i < classes; ++i) cells.push_back(absl::StrCat(matrix.counts(row * classes + i)));
    table.AddRow(std::move(cells));
  }
  return absl::StrCat(text, "\nsamples of the class (row) that were given the class (column)\n",
                      table.Render(style));
}

absl::StatusOr<v1::EvaluateRequest> MakeRequest(const EvaluateOptions& options) {
  v1::EvaluateRequest request;
  request.set_artifact(options.artifact);
  request.set_batch_size(options.batch_size);
  const absl::Status status = ReadSamples(options.dataset, options.split, &request);
  if (!status.ok()) return status;
  for (const std::string& name : options.metrics) {
    const auto* metric = FindEnumValue(*v1::Metric_descriptor(), name);
    if (metric == nullptr || metric->number() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--metric: unknown metric `", name, "`; give one of ",
                       absl::StrJoin(ShortEnumNames(*v1::Metric_descriptor()), ", ")));
    }
    request.add_metrics(static_cast<v1::Metric>(metric->number()));
  }
  return request;
}

int RunEvaluate(Session& session, const EvaluateOptions& options) {
  absl::StatusOr<v1::EvaluateRequest> request = MakeRequest(options);
  if (!request.ok()) return session.Fail(request.status());
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  request->set_name(job->name());
  Terminal& terminal = session.terminal();
  const bool live = terminal.Interactive() && !session.structured();
  // The daemon opens a large data set before it sends the first response.
  if (live) terminal.Out("the daemon opens the model and its samples");
  StreamNotes observer(terminal, [&](absl::string_view note) {
    if (live) terminal.Out("\r\x1b[K");
    terminal.Err(absl::StrCat(note, "\n"));
  });
  absl::StatusOr<v1::Evaluation> evaluation =
      (*client)->Evaluate(*request, observer, [&](const v1::EvaluateResponse& response) {
        if (live && !response.notices().empty()) terminal.Out("\r\x1b[K");
        for (const std::string& notice : response.notices()) {
          terminal.Err(Printable(absl::StrCat("notice: ", notice, "\n")));
        }
        if (!live || response.samples() == 0) return;
        terminal.Out(absl::StrCat("\r\x1b[K", FormatCount(response.done()), " of ",
                                  FormatCount(response.samples()), " samples"));
      });
  if (live) terminal.Out("\r\x1b[K");
  if (absl::IsCancelled(evaluation.status()) && terminal.Interrupted()) return kDetached;
  if (!evaluation.ok()) return session.Fail(evaluation.status());
  session.MakeShowable(&*evaluation);
  terminal.Out(session.structured()
                   ? Structured(session.options.output, *evaluation)
                   : absl::StrCat(Describe(*evaluation), DescribeClasses(*evaluation, session.style())));
  return kSucceeded;
}

}  // namespace

void AddEvaluate(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<EvaluateOptions>();
  const Command command = app.AddCommand(
      "evaluate", "Measure a job's model on a data set (default: the job's own validation samples)");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  AddSampleOptions(command, options->dataset, options->split);
  command
      .AddOption("--metric", options->metrics,
                 "Metrics besides the loss (default: the job's metrics); may be given several times")
      .ValueName("METRIC")
      .OneValueEach();
  command
      .AddOption("--artifact", options->artifact,
                 "The job's model (default: model.safetensors); model-STEP.safetensors: that of a checkpoint")
      .ValueName("NAME");
  command
      .AddOption("--batch-size", options->batch_size,
                 "The batch size (default: the job's validation batch size)")
      .ValueName("N")
      .Range(1, 65536);
  command.Action([options, &session, &exit_code] { exit_code = RunEvaluate(session, *options); });
}

}  // namespace tandem::cli
