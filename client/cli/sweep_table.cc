#include "client/cli/sweep_table.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/format.h"
#include "client/cli/job_ending.h"
#include "client/cli/table.h"
#include "client/lib/enum_names.h"
#include "proto/fields/field_value.h"

namespace tandem::cli {
namespace {

// "jobs/ID" as "ID".
std::string IdOf(absl::string_view name) { return std::string(name.substr(name.find('/') + 1)); }

std::string ValueText(const google::protobuf::Value& value) {
  if (value.has_number_value()) return FormatSetting(value.number_value());
  if (value.has_string_value()) return value.string_value();
  return ToJsonText(value).value_or("?");
}

// As few of the last parts of fields' paths as tell them apart: "learning_rate", "layers[0].dense.units".
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

// What the weights that a download returns were measured to be.
std::string WeightsText(const v1::SweepResult& result) {
  if (result.artifact() == "best.safetensors") return BestText(result.best());
  return absl::StrCat(result.best().validation() ? "validation " : "training ", result.best().metric(), " ",
                      FormatMeasure(result.value()), ", of its last weights");
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
    absl::StrAppend(out, count.jobs(), " ", absl::AsciiStrToLower(client::ShortEnumName(count.state())));
  });
}

std::string ColoredSweepState(v1::SweepState state, const Style& style) {
  const std::string name = absl::AsciiStrToLower(client::ShortEnumName(state));
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

std::string SweepText(const v1::Sweep& sweep, const Style& style) {
  const std::string& metric = sweep.objective().metric();
  std::string text = absl::StrCat(style.Bold(IdOf(sweep.name())), " ",
                                  ColoredSweepState(sweep.state(), style), ": ", CountsText(sweep), "\n\n");
  if (sweep.results().empty()) return text;
  std::vector<Table::Column> columns = {{""}, {"JOB"}, {"STATE"}};
  for (const std::string& name : ShortNames(sweep.results(0))) columns.push_back({name, true});
  const std::string measure = metric.empty() ? "objective" : metric;
  columns.insert(
      columns.end(),
      {{"EPOCHS", true}, {absl::StrCat("best ", measure), true}, {absl::StrCat("last ", measure), true}});
  Table table(columns);
  std::vector<std::string> errors;
  for (const v1::SweepResult& result : sweep.results()) {
    const bool best = sweep.has_best() && result.index() == sweep.best().index();
    std::vector<std::string> row = {best ? style.Green("*") : "", IdOf(result.job()),
                                    ColoredState(result.state(), style)};
    for (const v1::SweepValue& value : result.values()) row.push_back(ValueText(value.value()));
    row.insert(row.end(), {Epochs(result), result.has_best() ? FormatMeasure(result.best().value()) : "-",
                           result.has_last_value() ? FormatMeasure(result.last_value()) : "-"});
    row.resize(columns.size());
    table.AddRow(std::move(row));
    if (result.state() == v1::JOB_STATE_FAILED) {
      errors.push_back(absl::StrCat(IdOf(result.job()), ": ", Indented(result.message()), "\n"));
    }
  }
  absl::StrAppend(&text, table.Render(style));
  if (sweep.has_best()) {
    const v1::SweepResult& best = sweep.best();
    absl::StrAppend(&text, "\n* best: ", ValuesText(best), " with ", WeightsText(best),
                    "\n  these weights: tandem download ", IdOf(best.job()), " ", best.artifact(), "\n");
  }
  for (const std::string& error : errors) absl::StrAppend(&text, style.Red("failed "), error);
  return text;
}

}  // namespace tandem::cli
