#include "proto/fields/field_value.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Value;
namespace util = google::protobuf::util;

// Doubles are exact for whole numbers up to this.
constexpr double kMostExact = 9007199254740992.0;

absl::Status CheckFinite(const Value& value) {
  switch (value.kind_case()) {
    case Value::KIND_NOT_SET:
    case Value::kNullValue:
      return absl::InvalidArgumentError("has no value");
    case Value::kNumberValue:
      if (std::isfinite(value.number_value())) return absl::OkStatus();
      return absl::InvalidArgumentError("is a number that is not finite");
    case Value::kListValue:
      for (const Value& element : value.list_value().values()) {
        if (absl::Status status = CheckFinite(element); !status.ok()) return status;
      }
      return absl::OkStatus();
    case Value::kStructValue:
      for (const auto& [name, member] : value.struct_value().fields()) {
        if (absl::Status status = CheckFinite(member); !status.ok()) return status;
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

// Returns the values that a scalar field, or an element of a list, accepts.
std::string WantedBy(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("the full name of a value, such as ", field.enum_type()->value(0)->name());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("an object with fields of ", field.message_type()->name());
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    default:
      return "a whole number";
  }
}

// Turns a whole number that JSON has as text into a number.
void MakeNumber(Value* value) {
  int64_t whole = 0;
  if (value->kind_case() == Value::kStringValue && absl::SimpleAtoi(value->string_value(), &whole) &&
      std::abs(static_cast<double>(whole)) < kMostExact) {
    value->set_number_value(static_cast<double>(whole));
  }
}

}  // namespace

absl::StatusOr<std::string> ToJsonText(const Value& value) {
  if (absl::Status status = CheckFinite(value); !status.ok()) return status;
  std::string text;
  if (!util::MessageToJsonString(value, &text).ok()) {
    return absl::InvalidArgumentError("cannot be written as JSON");
  }
  return text;
}

absl::Status SetFieldValue(const FieldPlace& place, const Value& value) {
  const absl::StatusOr<std::string> text = ToJsonText(value);
  if (!text.ok()) return text.status();
  const FieldDescriptor& field = *place.field;
  const Reflection& reflection = *place.message->GetReflection();
  const bool is_element = place.index >= 0;
  // Reads the value into an empty message, so that other fields do not matter.
  const std::unique_ptr<Message> alone(place.message->New());
  const std::string json =
      absl::StrCat("{\"", field.name(), "\": ", is_element ? "[" : "", *text, is_element ? "]" : "", "}");
  const bool wants_list = field.is_repeated() && !field.is_map() && !is_element;
  if (wants_list != (value.kind_case() == Value::kListValue) ||
      !util::JsonStringToMessage(json, alone.get()).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("is ", text->substr(0, 100), "; it must be ",
                                                   wants_list ? "a list, of which each element is " : "",
                                                   WantedBy(field)));
  }
  if (!is_element) {
    reflection.ClearField(place.message, &field);
    place.message->MergeFrom(*alone);
    return absl::OkStatus();
  }
  // MergeFrom adds the new value at the end. It then takes the old value's place.
  place.message->MergeFrom(*alone);
  const int last = reflection.FieldSize(*place.message, &field) - 1;
  reflection.SwapElements(place.message, &field, place.index, last);
  reflection.RemoveLast(place.message, &field);
  return absl::OkStatus();
}

absl::StatusOr<Value> GetFieldValue(const FieldPlace& place) {
  const FieldDescriptor& field = *place.field;
  const std::unique_ptr<Message> alone(place.message->New());
  alone->CopyFrom(*place.message);
  std::vector<const FieldDescriptor*> present;
  alone->GetReflection()->ListFields(*alone, &present);
  for (const FieldDescriptor* other : present) {
    if (other != &field) alone->GetReflection()->ClearField(alone.get(), other);
  }
  util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  // Prints the number 0 too.
  options.always_print_primitive_fields = field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
  std::string json;
  google::protobuf::Struct fields;
  if (!util::MessageToJsonString(*alone, &json, options).ok() ||
      !util::JsonStringToMessage(json, &fields).ok()) {
    return absl::InvalidArgumentError("cannot be written as JSON");
  }
  const auto found = fields.fields().find(field.name());
  if (found == fields.fields().end()) return absl::InvalidArgumentError("has no value");
  Value value = found->second;
  if (place.index >= 0) {
    if (place.index >= value.list_value().values_size()) {
      return absl::InvalidArgumentError("has no such element");
    }
    value = Value(value.list_value().values(place.index));
  }
  const bool is_whole = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                        field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  if (is_whole) {
    MakeNumber(&value);
    if (value.has_list_value()) {
      for (Value& element : *value.mutable_list_value()->mutable_values()) MakeNumber(&element);
    }
  }
  return value;
}

}  // namespace tandem
