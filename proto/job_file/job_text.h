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

// The largest job file that is read, in bytes.
inline constexpr size_t kLargestJobFile = 1 << 20;

// What is wrong with 0 replicas. For the daemon that is as if nobody had said how many.
inline constexpr char kNoReplicas[] = "is 0; want at least 1, or leave it out";

// Where fields stand in a text, by their paths.
using FieldPositions = std::map<std::string, TextPosition>;

// Removes the byte order mark at the begin of a text. Returns what is wrong with the text whatever its
// format: a zero byte, bytes that are not UTF-8, nothing in it. Empty: nothing is wrong.
std::vector<ReadProblem> CheckText(std::string* text);

// Reads a message from a text of one document in YAML or JSON, strictly, as MessageReader does. Returns all
// problems in the order of the text; empty: none. `want` is the problem of a document that is no mapping:
// "want a mapping". Memory is bounded by the text's size, whatever its aliases.
std::vector<ReadProblem> ReadYamlMessage(const std::string& text, absl::string_view want,
                                         google::protobuf::Message* message, FieldPositions* positions);

// Reads so from the value of the key `member` if the document has this key, else from the whole document.
std::vector<ReadProblem> ReadYamlMember(const std::string& text, const char* member, absl::string_view want,
                                        google::protobuf::Message* message);

// Reads a job so, and refuses 0 replicas.
std::vector<ReadProblem> ReadYamlJob(const std::string& text, v1::JobSpec* spec, FieldPositions* positions);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_JOB_TEXT_H_
