#ifndef TANDEM_CLIENT_LIB_SCALAR_TEXT_H_
#define TANDEM_CLIENT_LIB_SCALAR_TEXT_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Sets a field from a person's text, or adds the value if the field is repeated. Whole numbers may have the
// form 1e4. Numbers must be finite and within the field's range. Truth values are true and false. Text must
// be UTF-8. An enum's value has its short or full name. Returns "" on success. Otherwise returns the problem,
// as the rest of a sentence that begins with the field: "want a whole number, got `many`".
std::string SetScalar(absl::string_view text, const google::protobuf::FieldDescriptor& field,
                      google::protobuf::Message* message);

// Returns the values that a field accepts, for messages: "a whole number", "one of relu, identity", "a
// mapping".
std::string Wanted(const google::protobuf::FieldDescriptor& field);

// Returns a person's text for a message: in backquotes, shortened, without control characters.
std::string Quoted(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_SCALAR_TEXT_H_
