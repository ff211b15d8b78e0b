#include "proto/job_file/field_setting.h"

#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/spelling.h"
#include "proto/fields/field_place.h"
#include "proto/fields/field_value.h"
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
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    Message* element = reflection.MutableRepeatedMessage(place.message, &field, place.index);
    element->Clear();
    return reader.ReadMessage(value, place.path, element);
  }
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

}  // namespace

absl::Status SetField(absl::string_view path, absl::string_view yaml, v1::JobSpec* spec,
                      google::protobuf::Value* canonical) {
  v1::JobSpec changed = *spec;
  const absl::StatusOr<FieldPlace> place =
      FindField(absl::StripAsciiWhitespace(path), &SpellingHint, &changed);
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
  return SetField(assignment.substr(0, equals), assignment.substr(equals + 1), spec);
}

}  // namespace tandem
