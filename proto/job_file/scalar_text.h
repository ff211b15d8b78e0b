#ifndef TANDEM_CLIENT_LIB_SCALAR_TEXT_H_
#define TANDEM_CLIENT_LIB_SCALAR_TEXT_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Sets or, where the field is repeated, adds to a field of numbers, text, truth or names from how a person
// wrote it. Whole numbers may be written as 1e4; numbers must be finite and within the field's range; truth
// is true or false; text must be UTF-8; an enum's value is its short or full name. "" where that worked, else
// what is wrong, as the rest of a sentence that begins with the field: "want a whole number, got `many`".
std::string SetScalar(absl::string_view text, const google::protobuf::FieldDescriptor& field,
                      google::protobuf::Message* message);

// What the field wants, for messages: "a whole number", "one of relu, identity", "a mapping".
std::string Wanted(const google::protobuf::FieldDescriptor& field);

// Text of a person in a message about it: in backquotes, shortened, without control characters.
std::string Quoted(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_SCALAR_TEXT_H_
