#include "proto/schema/file_schema.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/job_file/enum_names.h"

namespace tandem {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
// Keeps members in the order in which they are added.
using Json = nlohmann::ordered_json;

constexpr char kWholeNumber[] = "^[-+]?[0-9]+(\\.0*)?([eE]\\+?[0-9]+)?$";
constexpr char kNumber[] = "^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?$";
constexpr char kTruth[] = "^(true|True|TRUE|false|False|FALSE)$";
// The forms of a value exclude each other. With "anyOf", yaml-language-server joins the titles and the
// descriptions of all forms to the text that it shows about a field.
constexpr char kForms[] = "oneOf";

// The comment before a declaration, one line for each paragraph.
template <typename Declaration>
std::string CommentOf(const Declaration& declaration) {
  google::protobuf::SourceLocation location;
  if (!declaration.GetSourceLocation(&location)) return "";
  std::string comment;
  bool paragraph_ended = false;
  for (absl::string_view line : absl::StrSplit(location.leading_comments, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) {
      paragraph_ended = !comment.empty();
      continue;
    }
    absl::StrAppend(&comment, comment.empty() ? "" : paragraph_ended ? "\n" : " ", line);
    paragraph_ended = false;
  }
  return comment;
}

// The name without the package: "Layer", "GpuOptions.DataPlacement".
template <typename Type>
std::string NameOf(const Type& type) {
  return std::string(absl::StripPrefix(type.full_name(), absl::StrCat(type.file()->package(), ".")));
}

bool IsAnything(const Descriptor& type) { return type.full_name() == "google.protobuf.Value"; }

// Whether a job file may have the field.
bool IsInFiles(const FieldDescriptor& field) {
  return !field.is_map() && !absl::EndsWith(CommentOf(field), "Output only.");
}

// The names by which a file may call a field: its own, then its camel case form if this differs.
std::vector<std::string> NamesOf(const FieldDescriptor& field) {
  std::vector<std::string> names = {field.name()};
  if (field.camelcase_name() != field.name()) names.push_back(field.camelcase_name());
  return names;
}

Json Reference(absl::string_view name) { return {{"$ref", absl::StrCat("#/definitions/", name)}}; }

// A pattern of one text exactly, in letters of either case. The text is a name.
std::string AnyCase(absl::string_view name) {
  std::string pattern;
  for (const char c : name) {
    if (absl::ascii_isalpha(c)) {
      pattern += {'[', absl::ascii_toupper(c), absl::ascii_tolower(c), ']'};
    } else {
      pattern += c;
    }
  }
  return pattern;
}

template <typename Integer>
Json IntegerSchema() {
  return {{"type", {"integer", "string"}},
          {"minimum", std::numeric_limits<Integer>::min()},
          {"maximum", std::numeric_limits<Integer>::max()},
          {"pattern", kWholeNumber},
          {"patternErrorMessage", "want a whole number"}};
}

// The comment of a message or enum; empty for those of other packages.
template <typename Type>
std::string TypeComment(const Type* type) {
  return type == nullptr || absl::StartsWith(type->full_name(), "google.") ? "" : CommentOf(*type);
}

// The comment of a field and the comment of the field's type. Editors show one description alone.
std::string DescriptionOf(const FieldDescriptor& field) {
  const std::string of_type =
      field.enum_type() != nullptr ? TypeComment(field.enum_type()) : TypeComment(field.message_type());
  return absl::StrCat(CommentOf(field), of_type.empty() ? "" : "\n", of_type);
}

// The fields that a file may give by their name alone, in place of the message.
std::vector<const FieldDescriptor*> NamedMembers(const Descriptor& type) {
  std::vector<const FieldDescriptor*> members;
  if (type.real_oneof_decl_count() != 1) return members;
  for (int i = 0; i < type.oneof_decl(0)->field_count(); ++i) {
    const FieldDescriptor* field = type.oneof_decl(0)->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) members.push_back(field);
  }
  return members;
}

// The types of a value of a message or an enum. Nothing is a value of a oneof's member alone.
Json TypesOf(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) return "string";
  if (IsAnything(*field.message_type())) return {"string", "number", "boolean", "array", "object"};
  Json types = {"object"};
  if (!NamedMembers(*field.message_type()).empty()) types.push_back("string");
  if (field.real_containing_oneof() != nullptr) types.push_back("null");
  return types;
}

class SchemaMaker {
 public:
  std::string Make(const Descriptor& type, absl::string_view title) {
    AddMessage(type);
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", title},
                   {"description", CommentOf(type)},
                   {"type", "object"},
                   {"allOf", {Reference(NameOf(type))}},
                   {"definitions", std::move(definitions_)}};
    return schema.dump(0) + "\n";
  }

 private:
  // The schema of one value of a field, be the field repeated or not.
  Json ValueSchema(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return IntegerSchema<int32_t>();
      case FieldDescriptor::CPPTYPE_INT64:
        return IntegerSchema<int64_t>();
      case FieldDescriptor::CPPTYPE_UINT32:
        return IntegerSchema<uint32_t>();
      case FieldDescriptor::CPPTYPE_UINT64:
        return IntegerSchema<uint64_t>();
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return {{"type", {"number", "string"}},
                {"minimum", std::numeric_limits<double>::lowest()},
                {"maximum", std::numeric_limits<double>::max()},
                {"pattern", kNumber},
                {"patternErrorMessage", "want a number"}};
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", {"boolean", "string"}},
                {"pattern", kTruth},
                {"patternErrorMessage", "want true or false"}};
      case FieldDescriptor::CPPTYPE_STRING:
        return {{"type", {"string", "number", "boolean"}}};
      case FieldDescriptor::CPPTYPE_ENUM:
        AddEnum(*field.enum_type());
        return Reference(NameOf(*field.enum_type()));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        AddMessage(*field.message_type());
        return Reference(NameOf(*field.message_type()));
    }
    return Json::object();
  }

  Json FieldSchema(const FieldDescriptor& field) {
    Json schema = {{"description", DescriptionOf(field)}};
    Json value = ValueSchema(field);
    const bool is_reference = value.contains("$ref");
    if (!field.is_repeated()) {
      // Readers of draft-07 ignore keywords beside a reference. By the type, editors choose what to insert.
      if (is_reference) schema.update({{"type", TypesOf(field)}, {"allOf", {value}}});
      if (!is_reference) schema.update(value);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      schema.update({{"type", "array"}, {"items", {{"type", TypesOf(field)}, {"allOf", {value}}}}});
    } else if (is_reference) {
      schema.update({{"if", {{"type", "array"}}}, {"then", {{"items", value}}}, {"else", value}});
    } else {
      // A value alone is a list of one value.
      Json one_or_more = value;
      one_or_more["type"].insert(one_or_more["type"].begin(), "array");
      one_or_more["items"] = value;
      schema.update(one_or_more);
    }
    return schema;
  }

  void AddEnum(const EnumDescriptor& type) {
    if (definitions_.contains(NameOf(type))) return;
    Json names = Json::array(), comments = Json::array();
    std::vector<std::string> forms;
    for (int i = 0; i < type.value_count(); ++i) {
      const EnumValueDescriptor& value = *type.value(i);
      const std::string name = ShortEnumName(value);
      forms.push_back(AnyCase(name));
      if (!absl::EqualsIgnoreCase(name, value.name())) forms.push_back(AnyCase(value.name()));
      if (value.number() == 0) continue;
      names.push_back(name);
      comments.push_back(CommentOf(value));
    }
    definitions_[NameOf(type)] = {{"title", NameOf(type)},
                                  {kForms,
                                   {{{"enum", names}, {"enumDescriptions", comments}},
                                    {{"type", "string"},
                                     {"pattern", absl::StrCat("^(", absl::StrJoin(forms, "|"), ")$")},
                                     {"not", {{"enum", names}}}}}}};
  }

  void AddMessage(const Descriptor& type) {
    const std::string name = NameOf(type);
    if (definitions_.contains(name)) return;
    // A message may contain itself.
    definitions_[name] = Json::object();
    definitions_[name] = IsAnything(type) ? AnythingSchema(type) : MessageSchema(type);
  }

  // All but nothing.
  static Json AnythingSchema(const Descriptor& type) {
    return {{"type", {"string", "number", "boolean", "array", "object"}},
            {"items", Reference(NameOf(type))},
            {"additionalProperties", Reference(NameOf(type))}};
  }

  Json MessageSchema(const Descriptor& type) {
    Json fields = Json::object(), other_names = Json::object(), forbidden = Json::object();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (!IsInFiles(field)) continue;
      fields[field.name()] = FieldSchema(field);
      const std::vector<std::string> names = NamesOf(field);
      if (names.size() == 1) continue;
      // As a pattern, editors do not offer the name beside the usual one.
      other_names[absl::StrCat("^", names[1], "$")] =
          Reference(absl::StrCat(NameOf(type), "/properties/", names[0]));
      forbidden[names[1]]["properties"][names[0]] = false;
    }
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) ForbidOthers(*type.oneof_decl(i), &forbidden);
    Json schema = {{"title", NameOf(type)}, {"properties", fields}};
    if (!other_names.empty()) schema["patternProperties"] = other_names;
    schema["additionalProperties"] = false;
    if (!forbidden.empty()) schema["dependencies"] = forbidden;
    schema.update(FormsOf(type));
    return schema;
  }

  // A mapping, nothing, or the name of a member of the type's only oneof.
  static Json FormsOf(const Descriptor& type) {
    Json names = Json::array(), comments = Json::array();
    std::vector<std::string> others;
    for (const FieldDescriptor* field : NamedMembers(type)) {
      names.push_back(field->name());
      comments.push_back(CommentOf(*field));
      if (field->camelcase_name() != field->name()) others.push_back(field->camelcase_name());
    }
    const Json mapping = {{"type", {"object", "null"}}};
    if (names.empty()) return mapping;
    // If no form fits, editors show the problem of the first.
    Json forms = Json::array({{{"enum", names}, {"enumDescriptions", comments}}, mapping});
    if (!others.empty()) {
      forms.push_back(
          {{"type", "string"}, {"pattern", absl::StrCat("^(", absl::StrJoin(others, "|"), ")$")}});
    }
    return {{kForms, forms}};
  }

  // If a member is given, the members behind it cannot be given.
  static void ForbidOthers(const OneofDescriptor& oneof, Json* forbidden) {
    for (int i = 0; i + 1 < oneof.field_count(); ++i) {
      for (const std::string& given : NamesOf(*oneof.field(i))) {
        for (int k = i + 1; k < oneof.field_count(); ++k) {
          for (const std::string& other : NamesOf(*oneof.field(k))) {
            (*forbidden)[given]["properties"][other] = false;
          }
        }
      }
    }
  }

  Json definitions_ = Json::object();
};

}  // namespace

std::string FileSchema(const Descriptor& type, absl::string_view title) {
  return SchemaMaker().Make(type, title);
}

}  // namespace tandem
