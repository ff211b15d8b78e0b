#include "client/cli/sweep_table.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_progress.h"
#include "client/cli/table.h"
#include "proto/fields/field_value.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

std::string ValueText(const google::protobuf::Value& value) {
  if (value.has_number_value()) return FormatSetting(value.number_value());
  if (value.has_string_value()) return value.string_value();
  return ToJsonText(value).value_or("?");
}

// Returns the fields with the fewest last parts of their paths that differ: "learning_rate",
// "layers[0].dense.units".
std::vector<std::string> ShortNames(const v1::SweepResult& result) {
  std::vector<std::vector<std::string>> paths;
  for (const v1::SweepValue& value : result.values()) paths.push_back(absl::StrSplit(value.field(), '.'));
  std::vector<size_t> parts(paths.size(), 1);
  const auto name = [&](size_t i) {
    const size_t kept = std::min(parts[i], paths[i].size());
    return absl::StrJoin(paths[i].end() - static_cast<ptrdiff_t>(kept), paths[i].end(), ".");
  };
  for (bool grown = true; grown;) {
    grown = false;
    std::map<std::string, std::vector<size_t>> same;
    for (size_t i = 0; i < paths.size(); ++i) same[name(i)].push_back(i);
    for (const auto& [text, indices] : same) {
      if (indices.size() < 2) continue;
      for (const size_t i : indices) {
        if (parts[i] >= paths[i].size()) continue;
        ++parts[i];
        grown = true;
      }
    }
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < paths.size(); ++i) names.push_back(name(i));
  return names;
}

// Returns the measure that ranks the job, and the steps of the measurement and of the weights if they
// differ: "validation loss 0.0725, of its last weights".
std::string WeightsText(const v1::SweepResult& result) {
  if (result.artifact() == "best.safetensors") return BestText(result.best());
  const bool validation = result.best().validation();
  std::string text = absl::StrCat(validation ? "validation " : "training ", result.best().metric(), " ",
                                  FormatMeasure(result.value()));
  if (result.weights_step() == result.value_step()) {
    return absl::StrCat(text, validation ? ", of its last weights" : ", over its last epoch");
  }
  absl::StrAppend(&text,
                  validation ? ", of its last validation, at step " : ", over its last epoch, to step ",
                  FormatCount(result.value_step()));
  // The steps of a running job's weights are not known.
  if (result.weights_step() == 0) return text;
  return absl::StrCat(text, "; its weights are of step ", FormatCount(result.weights_step()));
}

// Returns the sweep's state as a line.
std::string Head(const v1::Sweep& sweep, const Style& style) {
  return absl::StrCat(style.Bold(ShortName(sweep.name())), " ", ColoredSweepState(sweep.state(), style), ": ",
                      CountsText(sweep), "\n\n");
}

// Returns "\n* best: learning_rate=0.1 with validation loss 0.4211, ..." and a line with the download
// command, or "" if there is no best job.
std::string BestLines(const v1::Sweep& sweep) {
  if (!sweep.has_best()) return "";
  const v1::SweepResult& best = sweep.best();
  return absl::StrCat("\n* best: ", ValuesText(best), " with ", WeightsText(best),
                      "\n  these weights: tandem download ", ShortName(best.job()), " ", best.artifact(),
                      "\n");
}

// Returns the `most` most important results, in their order. The best job comes first, then running jobs,
// then jobs that have ended, then waiting jobs.
std::vector<const v1::SweepResult*> Select(const v1::Sweep& sweep, size_t most) {
  std::vector<std::pair<int, const v1::SweepResult*>> ranked;
  for (const v1::SweepResult& result : sweep.results()) {
    const bool best = sweep.has_best() && result.index() == sweep.best().index();
    const bool waits = result.state() == v1::JOB_STATE_QUEUED || result.state() == v1::JOB_STATE_PAUSED;
    ranked.emplace_back(best ? 0 : HoldsDevices(result.state()) ? 1 : waits ? 3 : 2, &result);
  }
  const auto by_rank = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(ranked.begin(), ranked.end(), by_rank);
  ranked.resize(std::min(most, ranked.size()));
  std::vector<const v1::SweepResult*> selected;
  for (const auto& [rank, result] : ranked) selected.push_back(result);
  std::sort(selected.begin(), selected.end(),
            [](const auto* a, const auto* b) { return a->index() < b->index(); });
  return selected;
}

std::string Epochs(const v1::SweepResult& result) {
  return absl::StrCat(result.epochs(), "/",
                      result.epochs_planned() == 0 ? "-" : absl::StrCat(result.epochs_planned()));
}

}  // namespace

std::string ValuesText(const v1::SweepResult& result) {
  const std::vector<std::string> names = ShortNames(result);
  std::vector<std::string> parts;
  for (int i = 0; i < result.values_size(); ++i) {
    parts.push_back(absl::StrCat(names[i], "=", ValueText(result.values(i).value())));
  }
  return absl::StrJoin(parts, ", ");
}

std::string CountsText(const v1::Sweep& sweep) {
  return absl::StrJoin(sweep.counts(), ", ", [](std::string* out, const v1::SweepCount& count) {
    absl::StrAppend(out, count.jobs(), " ", absl::AsciiStrToLower(ShortEnumName(count.state())));
  });
}

std::string ColoredResultState(const v1::SweepResult& result, const Style& style) {
  const bool is_pruned =
      result.state() == v1::JOB_STATE_CANCELLED && result.reason() == v1::STATE_REASON_PRUNED;
  return is_pruned ? style.Yellow("pruned") : ColoredState(result.state(), style);
}

std::string ColoredSweepState(v1::SweepState state, const Style& style) {
  const std::string name = absl::AsciiStrToLower(ShortEnumName(state));
  switch (state) {
    case v1::SWEEP_STATE_SUCCEEDED:
      return style.Green(name);
    case v1::SWEEP_STATE_FAILED:
      return style.Red(name);
    case v1::SWEEP_STATE_CANCELLED:
    case v1::SWEEP_STATE_CANCELLING:
      return style.Yellow(name);
    default:
      return style.Cyan(name);
  }
}

namespace {

// Returns a row for each result. At least one result.
std::string Rows(const v1::Sweep& sweep, const std::vector<const v1::SweepResult*>& results,
                 const Style& style) {
  const std::string& metric = sweep.objective().metric();
  std::vector<Table::Column> columns = {{""}, {"JOB"}, {"STATE"}};
  for (const std::string& name : ShortNames(sweep.results(0))) columns.push_back({name, true});
  const std::string measure = metric.empty() ? "objective" : metric;
  columns.insert(
      columns.end(),
      {{"EPOCHS", true}, {absl::StrCat("best ", measure), true}, {absl::StrCat("last ", measure), true}});
  Table table(columns);
  for (const v1::SweepResult* result : results) {
    const bool best = sweep.has_best() && result->index() == sweep.best().index();
    std::vector<std::string> row = {best ? style.Green("*") : "", ShortName(result->job()),
                                    ColoredResultState(*result, style)};
    for (const v1::SweepValue& value : result->values()) row.push_back(ValueText(value.value()));
    row.insert(row.end(), {Epochs(*result), result->has_best() ? FormatMeasure(result->best().value()) : "-",
                           result->has_last_value() ? FormatMeasure(result->last_value()) : "-"});
    row.resize(columns.size());
    table.AddRow(std::move(row));
  }
  return table.Render(style);
}

}  // namespace

std::string SweepText(const v1::Sweep& sweep, const Style& style) {
  std::string text = Head(sweep, style);
  if (sweep.results().empty()) return text;
  absl::StrAppend(&text, Rows(sweep, Select(sweep, sweep.results_size()), style), BestLines(sweep));
  for (const v1::SweepResult& result : sweep.results()) {
    if (result.state() != v1::JOB_STATE_FAILED) continue;
    absl::StrAppend(&text, style.Red("failed "), ShortName(result.job()), ": ", Indented(result.message()),
                    "\n");
  }
  return text;
}

std::vector<std::string> SweepLines(const v1::Sweep& sweep, const Style& style, int width, int height) {
  // The head, the table's head, the best job's two lines, and the empty lines between them.
  constexpr int kOtherLines = 6;
  std::string text = Head(sweep, style);
  if (!sweep.results().empty()) {
    const int room = std::max(1, height - kOtherLines);
    // A line says how many jobs are left out.
    const bool is_cut = sweep.results_size() > room;
    const std::vector<const v1::SweepResult*> shown = Select(sweep, is_cut ? std::max(1, room - 1) : room);
    absl::StrAppend(&text, Rows(sweep, shown, style));
    if (is_cut) {
      absl::StrAppend(
          &text, style.Dim(absl::StrCat("   ... and ", sweep.results_size() - shown.size(), " more")), "\n");
    }
    absl::StrAppend(&text, BestLines(sweep));
  }
  std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  for (std::string& line : lines) line = Truncate(line, width);
  return lines;
}

}  // namespace tandem::cli
