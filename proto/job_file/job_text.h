#ifndef TANDEM_PROTO_JOB_FILE_JOB_TEXT_H_
#define TANDEM_PROTO_JOB_FILE_JOB_TEXT_H_

#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job_file/message_reader.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The largest accepted job file, in bytes.
inline constexpr size_t kLargestJobFile = 1 << 20;

// The problem text of 0 replicas. The daemon could not tell 0 from a missing count.
inline constexpr char kNoReplicas[] = "is 0; want at least 1, or leave it out";

// The places of fields in a text, by their paths.
using FieldPositions = std::map<std::string, TextPosition>;

// Removes the byte order mark at the start of a text. Returns the problems that do not depend on the format:
// a zero byte, bytes that are not UTF-8, an empty text.
std::vector<ReadProblem> CheckText(std::string* text);

// Reads a message from a text with a single document in YAML or JSON, with the rules of MessageReader.
// Returns all problems in the order of the text. If the document is not a mapping, the problem is `want`,
// such as "want a mapping". The size of the text bounds the memory, even if the text has aliases.
std::vector<ReadProblem> ReadYamlMessage(const std::string& text, absl::string_view want,
                                         google::protobuf::Message* message, FieldPositions* positions);

// Like ReadYamlMessage, but reads the value of the key `member` if the document has this key.
std::vector<ReadProblem> ReadYamlMember(const std::string& text, const char* member, absl::string_view want,
                                        google::protobuf::Message* message);

// Reads a job with ReadYamlMessage, and refuses 0 replicas.
std::vector<ReadProblem> ReadYamlJob(const std::string& text, v1::JobSpec* spec, FieldPositions* positions);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_JOB_TEXT_H_
