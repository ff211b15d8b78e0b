#include "proto/fields/field_place.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A part of a path: "layers[0]" or "units".
struct Step {
  std::string name;
  // -1 if there is no index.
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

// Returns the field of a step, and checks its index.
absl::StatusOr<const FieldDescriptor*> FindStep(const Message& message, const Step& step,
                                                const std::string& path, NameHint hint) {
  const Descriptor& type = *message.GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(step.name);
  if (field == nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": unknown field; ", names.empty() ? "nothing can be set here" : hint(step.name, names)));
  }
  if (step.index < 0) return field;
  if (!field->is_repeated() || field->is_map()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no list"));
  }
  const int size = message.GetReflection()->FieldSize(message, field);
  if (step.index >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, "[", step.index, "]: the list has ", size, size == 1 ? " element" : " elements",
                     size == 0 ? "" : absl::StrCat(", of which the last is [", size - 1, "]")));
  }
  return field;
}

}  // namespace

absl::StatusOr<FieldPlace> FindField(absl::string_view path, NameHint hint, Message* root) {
  const absl::StatusOr<std::vector<Step>> steps = ParsePath(path);
  if (!steps.ok()) return steps.status();
  FieldPlace place;
  place.message = root;
  for (size_t i = 0; i < steps->size(); ++i) {
    const Step& step = (*steps)[i];
    absl::StrAppend(&place.path, place.path.empty() ? "" : ".", step.name);
    const absl::StatusOr<const FieldDescriptor*> field = FindStep(*place.message, step, place.path, hint);
    if (!field.ok()) return field.status();
    place.field = *field;
    place.index = step.index;
    if (step.index >= 0) absl::StrAppend(&place.path, "[", step.index, "]");
    if (i + 1 == steps->size()) break;
    if (place.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return absl::InvalidArgumentError(absl::StrCat(place.path, ": has no fields of its own"));
    }
    if (place.field->is_repeated() && step.index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(place.path, ": is a list; name an element, such as ", place.path, "[0]"));
    }
    const google::protobuf::Reflection& reflection = *place.message->GetReflection();
    place.message = step.index >= 0
                        ? reflection.MutableRepeatedMessage(place.message, place.field, step.index)
                        : reflection.MutableMessage(place.message, place.field);
  }
  return place;
}

}  // namespace tandem
