#include "proto/job_file/message_reader.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/spelling.h"
#include "google/api/field_behavior.pb.h"
#include "proto/fields/field_value.h"
#include "proto/job_file/foreign_names.h"
#include "proto/job_file/scalar_text.h"

namespace tandem {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

constexpr int kDeepest = 40;
constexpr int kMostValues = 100'000;
// A text of a mebibyte has fewer bytes of values, unless it has aliases.
constexpr size_t kMostBytes = 4 << 20;

// Returns whether only the daemon sets the field.
bool IsOutputOnly(const FieldDescriptor& field) {
  const google::protobuf::FieldOptions& options = field.options();
  for (int i = 0; i < options.ExtensionSize(google::api::field_behavior); ++i) {
    if (options.GetExtension(google::api::field_behavior, i) == google::api::OUTPUT_ONLY) return true;
  }
  return false;
}

// Returns the names of the fields that a file may set.
std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) {
    if (!IsOutputOnly(*type.field(i))) names.push_back(type.field(i)->name());
  }
  return names;
}

std::vector<std::string> MemberNames(const OneofDescriptor& oneof) {
  std::vector<std::string> names;
  for (int i = 0; i < oneof.field_count(); ++i) names.push_back(oneof.field(i)->name());
  return names;
}

const FieldDescriptor* FieldNamed(const Descriptor& type, const std::string& name) {
  if (const FieldDescriptor* field = type.FindFieldByName(name)) return field;
  return type.FindFieldByCamelcaseName(name);
}

// Returns which alternatives to `holder` have a field of this name: "`momentum`, `nesterov` have it; ", or
// "". `holder` is null or holds the message without the field.
std::string OthersWith(const std::string& name, const FieldDescriptor* holder) {
  const OneofDescriptor* const oneof = holder == nullptr ? nullptr : holder->real_containing_oneof();
  if (oneof == nullptr) return "";
  std::vector<std::string> others;
  for (int i = 0; i < oneof->field_count(); ++i) {
    const FieldDescriptor& other = *oneof->field(i);
    if (other.message_type() == nullptr || FieldNamed(*other.message_type(), name) == nullptr) continue;
    others.push_back(absl::StrCat("`", other.name(), "`"));
  }
  return others.empty()
             ? ""
             : absl::StrCat(absl::StrJoin(others, ", "), others.size() == 1 ? " has it; " : " have it; ");
}

// Sets a scalar as a number, a truth value or text. A scalar becomes text if its number would be written
// differently (007, 1.10, whole numbers above 2^53).
void SetAnything(const YAML::Node& scalar, google::protobuf::Value* value) {
  const std::string& text = scalar.Scalar();
  value->set_string_value(text);
  // The tag of quoted scalars is "!".
  if (scalar.Tag() != "?" && !scalar.Tag().empty()) return;
  if (text == "true" || text == "false") return value->set_bool_value(text == "true");
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return;
  google::protobuf::Value as_number;
  as_number.set_number_value(number);
  const absl::StatusOr<std::string> written = ToJsonText(as_number);
  if (written.ok() && *written == text) *value = std::move(as_number);
}

// Returns the only field of numbers, truth values or enums that takes the scalar. Returns "" if no field or
// several fields take the scalar.
std::string OnlyFieldFor(const std::string& scalar, const Message& type) {
  const std::unique_ptr<Message> scratch(type.New());
  const Descriptor& descriptor = *type.GetDescriptor();
  std::string found;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ||
        field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
        !SetScalar(scalar, field, scratch.get()).empty()) {
      continue;
    }
    if (!found.empty()) return "";
    found = field.name();
  }
  return found;
}

// Returns the problem of a name in place of a message that has templates: the mapping of the template with
// this name, or with the nearest one. Returns "" if the message has no templates.
std::string TemplateAdvice(const std::string& name, const Descriptor& type) {
  const FieldDescriptor* const holder = type.FindFieldByName("template");
  if (holder == nullptr || holder->message_type() == nullptr) return "";
  if (holder->message_type()->real_oneof_decl_count() != 1) return "";
  const std::vector<std::string> templates = MemberNames(*holder->message_type()->oneof_decl(0));
  const std::string nearest = NearestName(name, templates);
  return absl::StrCat("want a mapping such as {template: {", nearest.empty() ? templates.front() : nearest,
                      ": {}}}, got ", Quoted(name),
                      nearest.empty() ? absl::StrCat("; of templates, ", SpellingHint(name, templates)) : "");
}

const char* KindOf(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return "nothing";
}

}  // namespace

TextPosition PositionOf(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? TextPosition{} : TextPosition{mark.line + 1, mark.column + 1};
}

std::string JoinPath(absl::string_view path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

void MessageReader::Report(TextPosition position, const std::string& path, std::string text) {
  if (!is_full()) problems_.push_back({position, path, std::move(text)});
}

// Refuses nodes that are too deep or too many. Only texts with aliases and harmful texts have such nodes.
bool MessageReader::Enter(const YAML::Node& node, const std::string& path) {
  if (is_full()) return false;
  if (depth_ >= kDeepest) {
    Report(PositionOf(node), path, absl::StrCat("nested more than ", kDeepest, " levels deep"));
    return false;
  }
  if (++values_ > kMostValues) {
    if (values_ == kMostValues + 1) {
      Report(PositionOf(node), path,
             absl::StrCat("more than ", kMostValues, " values, aliases counted each time"));
    }
    return false;
  }
  const bool had_room = bytes_ <= kMostBytes;
  if (node.IsScalar()) bytes_ += node.Scalar().size();
  if (bytes_ > kMostBytes) {
    if (had_room) {
      Report(PositionOf(node), path,
             absl::StrCat("more than ", kMostBytes, " bytes of values, aliases counted each time"));
    }
    return false;
  }
  return true;
}

void MessageReader::ReadMessage(const YAML::Node& node, const std::string& path, Message* message) {
  if (auto* value = google::protobuf::DynamicCastToGenerated<google::protobuf::Value>(message)) {
    return ReadAnything(node, path, value);
  }
  if (!Enter(node, path)) return;
  if (node.IsNull()) return;
  if (node.IsScalar()) return ReadNameForMessage(node, path, message);
  if (!node.IsMap()) return Report(PositionOf(node), path, "want a mapping, got a list");
  ++depth_;
  std::map<std::string, std::string> seen;
  for (const auto& entry : node) {
    const TextPosition position = PositionOf(entry.first);
    if (!entry.first.IsScalar()) {
      Report(position, path, absl::StrCat("a key must be a name, not ", KindOf(entry.first)));
      continue;
    }
    ReadEntry({entry.first.Scalar(), position}, entry.second, path, message, &seen);
  }
  --depth_;
}

// `seen` maps each field, and each oneof (as "oneof NAME"), to its key in this mapping.
void MessageReader::ReadEntry(const Key& key, const YAML::Node& value, const std::string& path,
                              Message* message, std::map<std::string, std::string>* seen) {
  // Computing spelling hints for thousands of names would take seconds.
  if (is_full()) return;
  const Descriptor& type = *message->GetDescriptor();
  const FieldDescriptor* field = FieldNamed(type, key.name);
  if (field == nullptr) {
    const std::string shown = Quoted(key.name);
    const std::string name = shown.substr(1, shown.size() - 2);
    return Report(key.position, JoinPath(path, name),
                  key.name == "<<" ? "merge keys are not supported; write the fields out"
                  : type.field_count() == 0
                      ? "unknown field; nothing can be set here"
                      : absl::StrCat("unknown field; ", UnknownFieldHint(key.name, type)));
  }
  const std::string field_path = JoinPath(path, field->name());
  if (IsOutputOnly(*field)) {
    const std::string nearest = NearestName(key.name, FieldNames(type));
    return Report(
        key.position, field_path,
        absl::StrCat("only the daemon sets this field; ",
                     nearest.empty() ? "leave it out" : absl::StrCat("did you mean `", nearest, "`?")));
  }
  if (!seen->emplace(field->name(), key.name).second) return Report(key.position, field_path, "given twice");
  if (const OneofDescriptor* oneof = field->real_containing_oneof()) {
    const auto [other, first] = seen->emplace("oneof " + oneof->name(), key.name);
    if (!first) {
      return Report(key.position, field_path,
                    absl::StrCat("`", other->second, "` is given already, and only one of ",
                                 absl::StrJoin(MemberNames(*oneof), ", "), " can be"));
    }
  }
  positions_[field_path] = key.position;
  key_position_ = key.position;
  ReadField(value, *field, field_path, message);
}

std::string MessageReader::UnknownFieldHint(const std::string& name, const Descriptor& type) const {
  const std::vector<std::string> names = FieldNames(type);
  // Of another system's name, the field here is a better hint than the alternatives that have the name.
  const bool is_foreign = !NameForForeign(name, names).empty();
  return absl::StrCat(is_foreign ? "" : OthersWith(name, holder_), FieldHint(name, names));
}

void MessageReader::ReadField(const YAML::Node& node, const FieldDescriptor& field, const std::string& path,
                              Message* message) {
  message->GetReflection()->ClearField(message, &field);
  if (field.is_map()) return Report(PositionOf(node), path, "cannot be set in a job file");
  if (field.is_repeated()) return ReadList(node, field, path, message);
  ReadValue(node, field, path, message);
}

void MessageReader::ReadList(const YAML::Node& node, const FieldDescriptor& field, const std::string& path,
                             Message* message) {
  if (node.IsSequence()) {
    if (!Enter(node, path)) return;
    ++depth_;
    int index = 0;
    for (const YAML::Node& element : node) {
      const std::string element_path = absl::StrCat(path, "[", index++, "]");
      const TextPosition position = PositionOf(element);
      positions_[element_path] = position;
      key_position_ = position;
      ReadValue(element, field, element_path, message);
    }
    --depth_;
    return;
  }
  if (node.IsScalar() && field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return ReadValue(node, field, path, message);
  }
  if (node.IsNull()) {
    return Report(
        key_position_, path,
        absl::StrCat("has no value; want a list (each element ", Wanted(field), "), or leave it out"));
  }
  const std::string got = node.IsScalar() ? Quoted(node.Scalar()) : KindOf(node);
  Report(PositionOf(node), path, absl::StrCat("want a list (each element begins with `-`), got ", got));
}

void MessageReader::ReadValue(const YAML::Node& node, const FieldDescriptor& field, const std::string& path,
                              Message* message) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    // Nothing chooses a member of a oneof, such as `flatten:`. Elsewhere it could mean the defaults or no
    // message.
    if (node.IsNull() && field.real_containing_oneof() == nullptr) {
      return Report(key_position_, path, "has no value; write {} for its defaults, or leave it out");
    }
    Message* child = field.is_repeated() ? message->GetReflection()->AddMessage(message, &field)
                                         : message->GetReflection()->MutableMessage(message, &field);
    const FieldDescriptor* const holder = std::exchange(holder_, &field);
    ReadMessage(node, path, child);
    holder_ = holder;
    return;
  }
  if (!Enter(node, path)) return;
  if (node.IsNull()) {
    return Report(key_position_, path,
                  absl::StrCat("has no value; want ", Wanted(field), ", or leave it out"));
  }
  if (!node.IsScalar()) {
    return Report(PositionOf(node), path, absl::StrCat("want ", Wanted(field), ", got ", KindOf(node)));
  }
  if (std::string problem = SetScalar(node.Scalar(), field, message); !problem.empty()) {
    Report(PositionOf(node), path, std::move(problem));
  }
}

void MessageReader::ReadAnything(const YAML::Node& node, const std::string& path,
                                 google::protobuf::Value* value) {
  if (!Enter(node, path)) return;
  if (node.IsNull()) return Report(key_position_, path, "has no value");
  ++depth_;
  if (node.IsSequence()) {
    auto* list = value->mutable_list_value();
    for (const YAML::Node& element : node) {
      ReadAnything(element, absl::StrCat(path, "[", list->values_size(), "]"), list->add_values());
    }
  } else if (node.IsMap()) {
    auto& fields = *value->mutable_struct_value()->mutable_fields();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        Report(PositionOf(entry.first), path,
               absl::StrCat("a key must be a name, not ", KindOf(entry.first)));
        continue;
      }
      const std::string& key = entry.first.Scalar();
      const std::string key_path = JoinPath(path, key);
      if (fields.contains(key)) {
        Report(PositionOf(entry.first), key_path, "given twice");
        continue;
      }
      ReadAnything(entry.second, key_path, &fields[key]);
    }
  } else {
    SetAnything(node, value);
  }
  --depth_;
}

void MessageReader::ReadNameForMessage(const YAML::Node& node, const std::string& path, Message* message) {
  const Descriptor& type = *message->GetDescriptor();
  const std::string& name = node.Scalar();
  if (type.real_oneof_decl_count() == 1) {
    const OneofDescriptor& oneof = *type.oneof_decl(0);
    const FieldDescriptor* field = FieldNamed(type, name);
    if (field != nullptr && field->real_containing_oneof() == &oneof &&
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      message->GetReflection()->MutableMessage(message, field);
      positions_[JoinPath(path, field->name())] = PositionOf(node);
      return;
    }
    std::string nearest = NameForForeign(name, MemberNames(oneof));
    if (nearest.empty()) nearest = NearestName(name, MemberNames(oneof));
    if (!nearest.empty() && nearest != name) {
      return Report(PositionOf(node), path,
                    absl::StrCat("want a mapping, got ", Quoted(name), "; did you mean `", nearest, "`?"));
    }
  }
  if (const std::string advice = TemplateAdvice(name, type); !advice.empty()) {
    return Report(PositionOf(node), path, advice);
  }
  // An element of a list whose kind is a oneof, such as a layer, needs more than its name.
  const bool needs_kind = type.real_oneof_decl_count() == 1 && holder_ != nullptr && holder_->is_repeated();
  const FieldDescriptor* named = needs_kind ? nullptr : type.FindFieldByName("name");
  const bool identifier = !name.empty() && name.find_first_of(" {}[],:#\n\t\"'") == std::string::npos;
  const std::string fitting = named != nullptr && identifier ? "name" : OnlyFieldFor(name, *message);
  Report(PositionOf(node), path,
         absl::StrCat("want a mapping",
                      fitting.empty() ? "" : absl::StrCat(" such as {", fitting, ": ", name, "}"), ", got ",
                      Quoted(name)));
}

}  // namespace tandem
