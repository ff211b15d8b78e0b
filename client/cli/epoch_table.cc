#include "client/cli/epoch_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "client/cli/job_progress.h"
#include "client/lib/main_metric.h"
#include "engine/base/measure_direction.h"

namespace tandem::cli {
namespace {

struct Cell {
  std::string heading;
  int width;
  std::string value;
};

std::string Metric(const v1::Evaluation& evaluation, const std::string& name) {
  const auto found = evaluation.metrics().find(name);
  return found == evaluation.metrics().end() ? "-" : FormatMeasure(found->second);
}

void AppendMeasures(const char* what, const v1::Evaluation& evaluation, std::string* text) {
  absl::StrAppend(text, "  ", what, " loss ", FormatMeasure(evaluation.loss()));
  for (const auto& [metric, value] : OrderedMetrics(evaluation)) {
    absl::StrAppend(text, "  ", what, " ", ShortMetricName(metric), " ", FormatMeasure(value));
  }
}

std::vector<Cell> Cells(const v1::EpochSummary& epoch) {
  const std::string metric = client::MainMetric(epoch.training());
  const std::string metric_name = metric.empty() ? "metric" : ShortMetricName(metric);
  const bool validated = epoch.has_validation();
  const double seconds = epoch.training_seconds() + epoch.validation_seconds();
  return {
      {"epoch", 7, absl::StrCat(epoch.epoch(), "/", epoch.epochs())},
      {"train loss", 10, FormatMeasure(epoch.training().loss())},
      {"train " + metric_name, 9, Metric(epoch.training(), metric)},
      {"val loss", 9, validated ? FormatMeasure(epoch.validation().loss()) : "-"},
      {"val " + metric_name, 8, validated ? Metric(epoch.validation(), metric) : "-"},
      {"seconds", 7, absl::StrFormat("%.2f", seconds)},
      {"samples/s", 8, FormatRate(epoch.images_per_second())},
      {"lr", 7, FormatSetting(epoch.learning_rate())},
  };
}

// Returns "  3 steps skipped", or "" if there are none.
std::string Skipped(const v1::EpochSummary& epoch) {
  const int64_t steps = epoch.skipped_steps();
  return steps == 0 ? ""
                    : absl::StrCat("  ", FormatCount(steps), steps == 1 ? " step" : " steps", " skipped");
}

}  // namespace

std::string EpochTable::Row(const v1::EpochSummary& epoch, int width) {
  std::string headings, row;
  int used = 0;
  const std::string metric = client::MainMetric(epoch.validation());
  bool best = false;
  if (!metric.empty()) {
    const double value = epoch.validation().metrics().at(metric);
    best = !best_.has_value() || (IsBetterIfSmaller(metric) ? value < *best_ : value > *best_);
    if (best) best_ = value;
  }
  for (const Cell& cell : Cells(epoch)) {
    const int column = std::max<int>(cell.width, cell.heading.size());
    if (used > 0 && used + 2 + column > width) break;
    const char* gap = used == 0 ? "" : "  ";
    used += column + (used == 0 ? 0 : 2);
    const bool marked = best && cell.heading == "val " + ShortMetricName(metric);
    absl::StrAppend(&headings, gap, PadLeft(cell.heading, column));
    const std::string padded = PadLeft(cell.value, column);
    absl::StrAppend(&row, gap, marked ? style_.Green(padded) : padded);
  }
  // Printed after the columns, because hardly any epoch has skipped steps.
  if (const std::string skipped = Skipped(epoch); used + skipped.size() <= static_cast<size_t>(width)) {
    absl::StrAppend(&row, style_.Dim(skipped));
  }
  std::string text = began_ ? "" : style_.Dim(headings) + "\n";
  began_ = true;
  return absl::StrCat(text, row, "\n");
}

std::string PlainEpoch(const v1::EpochSummary& epoch) {
  std::string text = absl::StrCat("epoch ", epoch.epoch(), "/", epoch.epochs());
  AppendMeasures("train", epoch.training(), &text);
  if (epoch.has_validation()) AppendMeasures("val", epoch.validation(), &text);
  absl::StrAppend(&text, absl::StrFormat("  %.2f s  ", epoch.training_seconds() + epoch.validation_seconds()),
                  FormatRate(epoch.images_per_second()), " samples/s  learning rate ",
                  FormatSetting(epoch.learning_rate()), Skipped(epoch));
  return text;
}

std::string PlainValidation(const v1::ValidationResult& result) {
  std::string text = absl::StrCat("step ", FormatCount(result.step()));
  AppendMeasures("val", result.validation(), &text);
  return absl::StrCat(text, absl::StrFormat("  %.2f s", result.validation_seconds()));
}

std::string PlainWorkerLoads(const v1::WorkerLoads& loads) {
  std::string text = absl::StrCat("loads from step ", FormatCount(loads.step() + 1), ":");
  for (const v1::ReplicaLoad& replica : loads.replicas()) {
    absl::StrAppend(&text, replica.rank() == 0 ? " " : ", ", absl::StripPrefix(replica.device(), "devices/"),
                    " ", replica.load(), " (", FormatRate(replica.samples_per_second()), " samples/s)");
  }
  return text;
}

std::string PlainNotice(const v1::Notice& notice) {
  return absl::StrReplaceAll(notice.message(), {{"\n", "\\n"}, {"\t", "\\t"}});
}

}  // namespace tandem::cli
