#include "client/lib/sweep_file.h"

#include <yaml-cpp/yaml.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/lib/file_reading.h"
#include "engine/base/spelling.h"
#include "proto/fields/field_place.h"
#include "proto/job_file/foreign_names.h"
#include "proto/job_file/scalar_text.h"
#include "proto/job_file/sweep_values.h"
#include "proto/job_file/yaml_text.h"

namespace tandem::client {
namespace {

using google::protobuf::Value;

// Splits "path=value" into "path" and "value".
absl::StatusOr<std::pair<std::string, std::string>> Split(absl::string_view assignment,
                                                          absl::string_view example) {
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("`", assignment, "`: want ", example));
  }
  return std::pair(std::string(absl::StripAsciiWhitespace(assignment.substr(0, equals))),
                   std::string(absl::StripAsciiWhitespace(assignment.substr(equals + 1))));
}

// Converts a value from its form in a job file to its form in a request.
absl::Status Read(const std::string& path, absl::string_view yaml, const v1::JobSpec& base, Value* value) {
  v1::JobSpec changed = base;
  return SetField(path, yaml, &changed, value);
}

// Reads "0.1,0.01" or "[3,3],[5,5]".
absl::StatusOr<std::vector<Value>> ReadValues(const std::string& path, const std::string& text,
                                              const v1::JobSpec& base) {
  std::vector<Value> values;
  // yaml-cpp throws even from plain accessors.
  try {
    const YAML::Node list = YAML::Load(absl::StrCat("[", text, "]"));
    for (const YAML::Node& element : list) {
      YAML::Emitter yaml;
      yaml << YAML::Flow << element;
      if (absl::Status status = Read(path, yaml.c_str(), base, &values.emplace_back()); !status.ok())
        return status;
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": want a list of values such as ", path,
                                                   "=1,2, got ", Quoted(text), ": ", error.msg));
  }
  if (values.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": want values, such as ", path, "=1,2"));
  }
  return values;
}

// Returns whether a YAML text is a mapping with the key `base`.
bool LooksLikeSweep(const std::string& content) {
  try {
    const YamlText text = LoadYaml(content);
    return !text.has_more && text.first.IsMap() && text.first["base"];
  } catch (const YAML::Exception&) {
    return false;
  }
}

bool ReadNumbers(absl::string_view text, std::vector<double>* numbers) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtod(part, &numbers->emplace_back())) return false;
  }
  return numbers->size() == 2;
}

}  // namespace

absl::StatusOr<SweepFile> ParseSweepFile(const std::string& content, const std::string& name) {
  SweepFile sweep;
  if (!LooksLikeSweep(content)) {
    absl::StatusOr<JobFile> job = ParseJobFile(content, name);
    if (!job.ok()) return job.status();
    *sweep.sweep.mutable_base() = std::move(job->spec);
    sweep.file.name = job->name;
    sweep.file.positions = std::move(job->positions);
    sweep.is_job = true;
    return sweep;
  }
  sweep.file.name = name;
  if (absl::Status status = ParseMessageFile(content, name, &sweep.sweep, &sweep.file.positions);
      !status.ok()) {
    return status;
  }
  // The file's reader guessed the types of values.
  if (const auto wrong = ConvertSweepValues(&sweep.sweep); wrong.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", wrong->path, ": ", wrong->text));
  }
  return sweep;
}

absl::StatusOr<SweepFile> ReadSweepFile(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadWholeFile(path, kLargestJobFile);
  if (!content.ok()) return content.status();
  return ParseSweepFile(*content, path == "-" ? "standard input" : path);
}

absl::Status AddGrid(absl::string_view assignment, v1::Sweep* sweep) {
  const auto parts = Split(assignment, "PATH=VALUES, such as training.optimizer.adam.learning_rate=0.1,0.01");
  if (!parts.ok()) return parts.status();
  const absl::StatusOr<std::vector<Value>> values = ReadValues(parts->first, parts->second, sweep->base());
  if (!values.ok()) return values.status();
  v1::SweepGridField* field = sweep->add_grid();
  field->set_field(parts->first);
  field->mutable_values()->Add(values->begin(), values->end());
  return absl::OkStatus();
}

absl::Status AddRandom(absl::string_view assignment, v1::Sweep* sweep) {
  constexpr char kExample[] =
      "PATH=DISTRIBUTION(...), such as training.optimizer.adam.learning_rate=log_uniform(1e-4,0.1)";
  const auto parts = Split(assignment, kExample);
  if (!parts.ok()) return parts.status();
  const auto& [path, text] = *parts;
  const size_t open = text.find('(');
  if (open == std::string::npos || !absl::EndsWith(text, ")")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": want ", kExample, ", got ", Quoted(text)));
  }
  const std::string name = text.substr(0, open);
  const std::string inner = text.substr(open + 1, text.size() - open - 2);
  v1::SweepRandomField field;
  field.set_field(path);
  std::vector<double> numbers;
  if (name == "choice") {
    const absl::StatusOr<std::vector<Value>> values = ReadValues(path, inner, sweep->base());
    if (!values.ok()) return values.status();
    field.mutable_choice()->mutable_values()->Add(values->begin(), values->end());
  } else if (name == "uniform" || name == "log_uniform") {
    if (!ReadNumbers(inner, &numbers)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": want ", name, "(MIN,MAX), got ", Quoted(text)));
    }
    v1::SweepRange* range = name == "uniform" ? field.mutable_uniform() : field.mutable_log_uniform();
    range->set_min(numbers[0]);
    range->set_max(numbers[1]);
  } else if (name == "integer") {
    const std::vector<absl::string_view> ends = absl::StrSplit(inner, ',');
    int64_t min = 0, max = 0;
    if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &min) || !absl::SimpleAtoi(ends[1], &max)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": want integer(MIN,MAX), got ", Quoted(text)));
    }
    field.mutable_integer()->set_min(min);
    field.mutable_integer()->set_max(max);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": unknown distribution ", Quoted(name), "; ",
                     SpellingHint(name, {"uniform", "log_uniform", "integer", "choice"})));
  }
  // Reports a misspelt field now.
  v1::JobSpec base = sweep->base();
  if (absl::Status found = FindField(path, &FieldHint, &base).status(); !found.ok()) return found;
  *sweep->mutable_random()->add_fields() = std::move(field);
  return absl::OkStatus();
}

}  // namespace tandem::client
