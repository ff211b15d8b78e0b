#ifndef TANDEM_SERVER_RPC_TEXT_PROBLEMS_H_
#define TANDEM_SERVER_RPC_TEXT_PROBLEMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "google/protobuf/repeated_field.h"
#include "proto/job_file/job_text.h"
#include "tandem/v1/job_service.pb.h"

// The common parts of ParseJob and ParseSweep.

namespace tandem::rpc {

// After a text of more bytes, a handler calls malloc_trim(0). Otherwise each thread would keep the memory of
// the text's nodes.
inline constexpr size_t kLargeText = 64 << 10;

using TextProblems = google::protobuf::RepeatedPtrField<v1::JobTextProblem>;

// Checks the size of a request with a text, and the number of its overrides.
absl::Status CheckTextRequest(const google::protobuf::Message& request, int overrides);

// Adds a problem. `position` may be unknown.
void AddProblem(const std::string& field, const std::string& text, TextPosition position,
                TextProblems* problems);

// Adds a text's problems.
void AddProblems(const std::vector<ReadProblem>& read, TextProblems* problems);

// Applies overrides to a job, as `tandem submit --set` does. Adds a problem for each wrong override.
void ApplyOverrides(const google::protobuf::RepeatedPtrField<std::string>& overrides, v1::JobSpec* spec,
                    TextProblems* problems);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_TEXT_PROBLEMS_H_
