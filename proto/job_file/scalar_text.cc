#include "proto/job_file/scalar_text.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/spelling.h"
#include "proto/job_file/enum_names.h"

namespace tandem {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Got(absl::string_view wanted, absl::string_view text) {
  return absl::StrCat("want ", wanted, ", got ", Quoted(text));
}

bool LooksWhole(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return true;
}

// Returns a whole number. If the text has none, returns nothing and sets `problem`.
template <typename Integer>
std::optional<Integer> ParseInteger(absl::string_view text, std::string* problem) {
  Integer value = 0;
  // Accepts 128.0.
  const size_t point = text.find('.');
  const bool no_fraction = text.find_first_not_of('0', point + 1) == absl::string_view::npos;
  const absl::string_view digits =
      point != absl::string_view::npos && no_fraction ? text.substr(0, point) : text;
  if (LooksWhole(digits)) {
    if (absl::SimpleAtoi(digits, &value)) return value;
    *problem = absl::StrCat("want a whole number from ", std::numeric_limits<Integer>::min(), " to ",
                            std::numeric_limits<Integer>::max(), ", got ", Quoted(text));
    return std::nullopt;
  }
  // Accepts 1e4. A double is exact below 2^53 only.
  double number = 0;
  constexpr double kExact = 9007199254740992.0;
  if (absl::SimpleAtod(text, &number) && std::floor(number) == number && std::abs(number) < kExact &&
      number >= static_cast<double>(std::numeric_limits<Integer>::min()) &&
      number <= static_cast<double>(std::numeric_limits<Integer>::max())) {
    return static_cast<Integer>(number);
  }
  *problem = Got("a whole number", text);
  return std::nullopt;
}

std::optional<double> ParseDouble(absl::string_view text, std::string* problem) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) {
    *problem = Got("a number", text);
    return std::nullopt;
  }
  if (!std::isfinite(value)) {
    *problem = Got("a finite number", text);
    return std::nullopt;
  }
  return value;
}

std::optional<bool> ParseBool(absl::string_view text, std::string* problem) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  *problem = Got("true or false", text);
  return std::nullopt;
}

// Calls the setter or adder of a type through reflection.
#define TANDEM_STORE(Type, value)                                                    \
  (field.is_repeated() ? message->GetReflection()->Add##Type(message, &field, value) \
                       : message->GetReflection()->Set##Type(message, &field, value))

}  // namespace

std::string SetScalar(absl::string_view text, const FieldDescriptor& field, Message* message) {
  std::string problem;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      if (const auto value = ParseInteger<int32_t>(text, &problem)) TANDEM_STORE(Int32, *value);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      if (const auto value = ParseInteger<int64_t>(text, &problem)) TANDEM_STORE(Int64, *value);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      if (const auto value = ParseInteger<uint32_t>(text, &problem)) TANDEM_STORE(UInt32, *value);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      if (const auto value = ParseInteger<uint64_t>(text, &problem)) TANDEM_STORE(UInt64, *value);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (const auto value = ParseDouble(text, &problem)) TANDEM_STORE(Double, *value);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      if (const auto value = ParseDouble(text, &problem)) TANDEM_STORE(Float, static_cast<float>(*value));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (const auto value = ParseBool(text, &problem)) TANDEM_STORE(Bool, *value);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      TANDEM_STORE(String, std::string(text));
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      if (const EnumValueDescriptor* value = FindEnumValue(*field.enum_type(), text)) {
        TANDEM_STORE(Enum, value);
      } else {
        const std::vector<std::string> names = ShortEnumNames(*field.enum_type());
        problem = Got(Wanted(field), text);
        if (const std::string nearest = NearestName(text, names); !nearest.empty()) {
          absl::StrAppend(&problem, "; did you mean `", nearest, "`?");
        }
      }
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      problem = Got(Wanted(field), text);
      break;
  }
  return problem;
}

#undef TANDEM_STORE

std::string Wanted(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const std::vector<std::string> names = ShortEnumNames(*field.enum_type());
      return absl::StrCat(names.size() == 1 ? "" : "one of ", absl::StrJoin(names, ", "));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a mapping";
    default:
      return "a whole number";
  }
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 60;
  std::string shown = "`";
  for (const char c : text.substr(0, kLongest)) shown += absl::ascii_iscntrl(c) ? ' ' : c;
  return absl::StrCat(shown, text.size() > kLongest ? "..." : "", "`");
}

}  // namespace tandem
