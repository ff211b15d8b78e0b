#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/lib/job_file.h"
#include "client/lib/message_reader.h"
#include "client/lib/spelling.h"

namespace tandem::client {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// One part of a path: "layers[0]" or "units".
struct Step {
  std::string name;
  // -1: none given.
  int index = -1;
};

absl::StatusOr<std::vector<Step>> ParsePath(absl::string_view path) {
  const auto malformed = [path] {
    return absl::InvalidArgumentError(
        absl::StrCat("`", path, "` is no path of a field: want one such as model.layers[0].conv2d.filters"));
  };
  std::vector<Step> steps;
  for (size_t at = 0; at <= path.size();) {
    Step step;
    while (at < path.size() && (absl::ascii_isalnum(path[at]) || path[at] == '_')) step.name += path[at++];
    if (step.name.empty()) return malformed();
    if (at < path.size() && path[at] == '[') {
      const size_t close = path.find(']', at);
      if (close == absl::string_view::npos ||
          !absl::SimpleAtoi(path.substr(at + 1, close - at - 1), &step.index) || step.index < 0) {
        return malformed();
      }
      at = close + 1;
    }
    steps.push_back(std::move(step));
    if (at == path.size()) return steps;
    if (path[at++] != '.') return malformed();
  }
  return malformed();
}

// The field of a step, its index checked.
absl::StatusOr<const FieldDescriptor*> FindStep(const Message& message, const Step& step,
                                                const std::string& path) {
  const Descriptor& type = *message.GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(step.name);
  if (field == nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": unknown field; ",
                     names.empty() ? "nothing can be set here" : SpellingHint(step.name, names)));
  }
  if (step.index < 0) return field;
  if (!field->is_repeated()) return absl::InvalidArgumentError(absl::StrCat(path, ": is no list"));
  const int size = message.GetReflection()->FieldSize(message, field);
  if (step.index >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, "[", step.index, "]: the list has ", size, size == 1 ? " element" : " elements",
                     size == 0 ? "" : absl::StrCat(", of which the last is [", size - 1, "]")));
  }
  return field;
}

// Sets the element that a step names.
void ReadElement(MessageReader& reader, const YAML::Node& value, const FieldDescriptor& field, int index,
                 const std::string& path, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    Message* element = reflection.MutableRepeatedMessage(message, &field, index);
    element->Clear();
    return reader.ReadMessage(value, path, element);
  }
  // The new value is added at the end and takes the old one's place.
  const int size = reflection.FieldSize(*message, &field);
  reader.AddElement(value, field, path, message);
  if (reflection.FieldSize(*message, &field) != size + 1) return;
  reflection.SwapElements(message, &field, index, size);
  reflection.RemoveLast(message, &field);
}

// Sets the field that `steps` lead to.
absl::Status SetAt(const std::vector<Step>& steps, const YAML::Node& value, Message* message) {
  std::string path;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    path = JoinPath(path, step.name);
    const absl::StatusOr<const FieldDescriptor*> field = FindStep(*message, step, path);
    if (!field.ok()) return field.status();
    if (step.index >= 0) absl::StrAppend(&path, "[", step.index, "]");
    if (i + 1 == steps.size()) {
      MessageReader reader;
      if (step.index >= 0) {
        ReadElement(reader, value, **field, step.index, path, message);
      } else {
        reader.ReadField(value, **field, path, message);
      }
      if (reader.problems().empty()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrJoin(reader.problems(), "\n", [](std::string* out, const ReadProblem& problem) {
            absl::StrAppend(out, problem.path, ": ", problem.text);
          }));
    }
    if ((*field)->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": has no fields of its own"));
    }
    if ((*field)->is_repeated() && step.index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is a list; name an element, such as ", path, "[0]"));
    }
    message = step.index >= 0 ? message->GetReflection()->MutableRepeatedMessage(message, *field, step.index)
                              : message->GetReflection()->MutableMessage(message, *field);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* spec) {
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", assignment, "`: want PATH=VALUE, such as training.epochs=1"));
  }
  const absl::StatusOr<std::vector<Step>> steps =
      ParsePath(absl::StripAsciiWhitespace(assignment.substr(0, equals)));
  if (!steps.ok()) return steps.status();
  v1::JobSpec changed = *spec;
  // yaml-cpp throws, also from what looks like plain access.
  try {
    const YAML::Node value = YAML::Load(std::string(assignment.substr(equals + 1)));
    if (absl::Status status = SetAt(*steps, value, &changed); !status.ok()) return status;
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(assignment.substr(0, equals), ": the value is not valid YAML: ", error.msg));
  }
  *spec = std::move(changed);
  return absl::OkStatus();
}

}  // namespace tandem::client
