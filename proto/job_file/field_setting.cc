#include "proto/job_file/field_setting.h"

#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "proto/fields/field_place.h"
#include "proto/fields/field_value.h"
#include "proto/job_file/foreign_names.h"
#include "proto/job_file/job_text.h"
#include "proto/job_file/message_reader.h"
#include "proto/job_file/yaml_text.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Sets the list element that a path names.
void ReadElement(MessageReader& reader, const YAML::Node& value, const FieldPlace& place) {
  const FieldDescriptor& field = *place.field;
  const Reflection& reflection = *place.message->GetReflection();
  // Adds the new value at the end, and swaps it with the old value.
  const int size = reflection.FieldSize(*place.message, &field);
  reader.AddElement(value, field, place.path, place.message);
  if (reflection.FieldSize(*place.message, &field) != size + 1) return;
  reflection.SwapElements(place.message, &field, place.index, size);
  reflection.RemoveLast(place.message, &field);
}

absl::Status SetFromYaml(const FieldPlace& place, const YAML::Node& value) {
  MessageReader reader;
  if (place.index >= 0) {
    ReadElement(reader, value, place);
  } else {
    reader.ReadField(value, *place.field, place.path, place.message);
  }
  if (reader.problems().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrJoin(reader.problems(), "\n", [](std::string* out, const ReadProblem& problem) {
        absl::StrAppend(out, problem.path, ": ", problem.text);
      }));
}

// Returns whether an override's text for a text field is YAML: quoted text, a list, a mapping or null. Other
// text stands for itself, because YAML has another meaning for many of a table's delimiters: `,`, `#`, `|`.
bool IsYamlText(absl::string_view text) {
  if (text == "null") return true;
  if (text.size() < 2) return false;
  switch (text.front()) {
    case '"':
    case '\'':
      return text.back() == text.front();
    case '[':
      return text.back() == ']';
    case '{':
      return text.back() == '}';
    default:
      return false;
  }
}

// Unsets a field. If the field is not set, the job does not change: FindField adds the messages on the path.
void Unset(const FieldPlace& place, v1::JobSpec* changed, v1::JobSpec* spec) {
  const Reflection& reflection = *place.message->GetReflection();
  const bool is_set = place.field->is_repeated() ? reflection.FieldSize(*place.message, place.field) > 0
                                                 : reflection.HasField(*place.message, place.field);
  if (!is_set) return;
  reflection.ClearField(place.message, place.field);
  *spec = std::move(*changed);
}

// Returns the text as a quoted YAML scalar.
std::string QuotedYaml(absl::string_view text) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(text,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\t", "\\t"}, {"\n", "\\n"}, {"\r", "\\r"}}),
      "\"");
}

// Returns whether the place holds a single text.
bool IsText(const FieldPlace& place) {
  return place.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
         (!place.field->is_repeated() || place.index >= 0);
}

}  // namespace

absl::Status SetField(absl::string_view path, absl::string_view yaml, v1::JobSpec* spec,
                      google::protobuf::Value* canonical) {
  v1::JobSpec changed = *spec;
  const absl::StatusOr<FieldPlace> place = FindField(absl::StripAsciiWhitespace(path), &FieldHint, &changed);
  if (!place.ok()) return place.status();
  // yaml-cpp throws even from plain accessors.
  try {
    const YamlText text = LoadYaml(std::string(yaml));
    if (text.has_more) {
      return absl::InvalidArgumentError(
          absl::StrCat(place->path, ": the value has a second YAML document (`---`); give one value"));
    }
    if (absl::Status status = SetFromYaml(*place, text.first); !status.ok()) return status;
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the value is not valid YAML: ", error.msg));
  }
  if (place->path == "replicas.count" && changed.replicas().count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("replicas.count: ", kNoReplicas));
  }
  if (canonical != nullptr) {
    absl::StatusOr<google::protobuf::Value> value = GetFieldValue(*place);
    if (!value.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(place->path, ": ", value.status().message()));
    }
    *canonical = *std::move(value);
  }
  *spec = std::move(changed);
  return absl::OkStatus();
}

absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* spec) {
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", assignment, "`: want PATH=VALUE, such as training.epochs=1"));
  }
  const absl::string_view path = absl::StripAsciiWhitespace(assignment.substr(0, equals));
  const absl::string_view value = assignment.substr(equals + 1);
  v1::JobSpec scratch = *spec;
  const absl::StatusOr<FieldPlace> place = FindField(path, &FieldHint, &scratch);
  if (!place.ok()) return place.status();
  absl::string_view text = absl::StripAsciiWhitespace(value);
  if (text == "null" && place->index < 0) {
    Unset(*place, &scratch, spec);
    return absl::OkStatus();
  }
  if (!IsText(*place) || value.empty() || IsYamlText(text)) return SetField(path, value, spec);
  // A space or a tab may be a table's delimiter.
  if (text.empty()) text = value;
  return SetField(path, QuotedYaml(text), spec);
}

}  // namespace tandem
