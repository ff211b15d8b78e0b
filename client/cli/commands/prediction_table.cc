#include "client/cli/commands/prediction_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/format.h"
#include "client/cli/table.h"

namespace tandem::cli {
namespace {

template <typename Test>
bool Any(const std::vector<v1::Prediction>& predictions, Test test) {
  return std::any_of(predictions.begin(), predictions.end(), test);
}

bool HasInput(const v1::Prediction& prediction) { return !prediction.input().empty(); }
bool HasTrueClass(const v1::Prediction& prediction) { return prediction.has_true_class(); }

std::string ClassName(const v1::ClassScore& score) {
  return score.name().empty() ? absl::StrCat("class ", score.index()) : score.name();
}

std::string Percent(double probability) { return absl::StrFormat("%.1f%%", 100 * probability); }

std::string Numbers(const google::protobuf::RepeatedField<float>& numbers) {
  return absl::StrJoin(
      numbers, " ", [](std::string* text, double number) { absl::StrAppend(text, FormatSetting(number)); });
}

// Returns a CSV field.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Appends two fields: the class's name or number, and its probability.
void AppendClass(const v1::ClassScore& score, std::string* text) {
  absl::StrAppend(text, ",", score.name().empty() ? absl::StrCat(score.index()) : CsvField(score.name()), ",",
                  absl::StrFormat("%.17g", score.probability()));
}

// Appends `count` fields. Fields after the last number are empty.
void AppendNumbers(const google::protobuf::RepeatedField<float>& numbers, int count, std::string* text) {
  for (int i = 0; i < count; ++i) {
    *text += ",";
    if (i < numbers.size()) absl::StrAppendFormat(text, "%.9g", numbers[i]);
  }
}

}  // namespace

std::string PredictionTable(const std::vector<v1::Prediction>& predictions, const Style& style) {
  const bool input = Any(predictions, HasInput);
  const bool sample = Any(predictions, [](const v1::Prediction& one) { return one.sample() > 0; });
  const bool true_class = Any(predictions, HasTrueClass);
  const bool classes = Any(predictions, [](const v1::Prediction& one) { return !one.classes().empty(); });
  const bool targets = Any(predictions, [](const v1::Prediction& one) { return !one.targets().empty(); });
  const bool outputs = Any(predictions, [](const v1::Prediction& one) { return !one.outputs().empty(); });
  std::vector<Table::Column> columns;
  if (input) columns.push_back({"INPUT"});
  if (sample || !input) columns.push_back({"SAMPLE", true});
  if (true_class) columns.push_back({"TRUE CLASS"});
  if (classes) columns.insert(columns.end(), {{"CLASS"}, {"PROBABILITY", true}, {"THEN"}});
  if (targets) columns.push_back({"TARGET"});
  if (outputs) columns.push_back({"OUTPUT"});
  Table table(columns);
  for (const v1::Prediction& prediction : predictions) {
    std::vector<std::string> row;
    if (input) row.push_back(prediction.input());
    if (sample || !input) row.push_back(absl::StrCat(prediction.sample()));
    if (true_class) row.push_back(prediction.has_true_class() ? ClassName(prediction.true_class()) : "-");
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
    if (targets) row.push_back(Numbers(prediction.targets()));
    if (outputs) row.push_back(Numbers(prediction.outputs()));
    table.AddRow(std::move(row));
  }
  return table.Render(style);
}

void PredictionCsv::Add(const std::vector<v1::Prediction>& predictions) {
  if (text_.empty()) Begin(predictions);
  for (const v1::Prediction& prediction : predictions) {
    if (has_input_) absl::StrAppend(&text_, CsvField(prediction.input()), ",");
    absl::StrAppend(&text_, prediction.sample());
    if (prediction.has_true_class()) {
      AppendClass(prediction.true_class(), &text_);
    } else if (has_true_class_) {
      text_ += ",,";
    }
    for (int i = 0; i < classes_; ++i) {
      if (i < prediction.classes_size()) {
        AppendClass(prediction.classes(i), &text_);
      } else {
        text_ += ",,";
      }
    }
    AppendNumbers(prediction.targets(), targets_, &text_);
    AppendNumbers(prediction.outputs(), outputs_, &text_);
    text_ += "\n";
  }
}

void PredictionCsv::Begin(const std::vector<v1::Prediction>& predictions) {
  has_input_ = Any(predictions, HasInput);
  // The first samples of a data set may have ignored labels alone.
  has_true_class_ = Any(predictions, [](const v1::Prediction& one) {
    const bool may_follow = one.input().empty() && one.targets().empty() && one.output_shape_size() == 1;
    return one.has_true_class() || may_follow;
  });
  for (const v1::Prediction& prediction : predictions) {
    classes_ = std::max(classes_, prediction.classes_size());
    targets_ = std::max(targets_, prediction.targets_size());
    outputs_ = std::max(outputs_, prediction.outputs_size());
  }
  text_ = has_input_ ? "input,sample" : "sample";
  if (has_true_class_) text_ += ",true_class,true_probability";
  for (int i = 0; i < classes_; ++i) {
    const std::string rank = i == 0 ? "" : absl::StrCat("_", i + 1);
    absl::StrAppend(&text_, ",class", rank, ",probability", rank);
  }
  for (int i = 0; i < targets_; ++i) absl::StrAppend(&text_, ",target_", i);
  for (int i = 0; i < outputs_; ++i) absl::StrAppend(&text_, ",output_", i);
  text_ += "\n";
}

}  // namespace tandem::cli
