#include "client/cli/printable.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tandem::cli {
namespace {

void AppendEscaped(unsigned char byte, std::string* text) {
  absl::StrAppend(text, "\\x", absl::Hex(byte, absl::kZeroPad2));
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = text[i];
    const bool is_control = absl::ascii_iscntrl(byte) && byte != '\n' && byte != '\t';
    // U+0080 to U+009F, which include one-character forms of escape sequences.
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() &&
                       static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                       static_cast<unsigned char>(text[i + 1]) <= 0x9F;
    if (is_c1) {
      AppendEscaped(text[++i], &printable);
    } else if (is_control) {
      AppendEscaped(byte, &printable);
    } else {
      printable.push_back(text[i]);
    }
  }
  return printable;
}

void MakePrintable(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int size = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < size; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        MakePrintable(field->is_repeated() ? reflection.MutableRepeatedMessage(message, field, i)
                                           : reflection.MutableMessage(message, field));
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        if (field->is_repeated()) {
          reflection.SetRepeatedString(message, field, i,
                                       Printable(reflection.GetRepeatedString(*message, field, i)));
        } else {
          reflection.SetString(message, field, Printable(reflection.GetString(*message, field)));
        }
      }
    }
  }
}

}  // namespace tandem::cli
