#include <malloc.h>

#include <string>
#include <utility>
#include <vector>

#include "proto/job_file/job_text.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"
#include "server/rpc/text_problems.h"

namespace tandem::rpc {
namespace {

v1::ParseJobResponse Parse(const v1::ParseJobRequest& request) {
  v1::ParseJobResponse response;
  TextProblems* const problems = response.mutable_problems();
  std::string text = request.text();
  FieldPositions positions;
  std::vector<ReadProblem> read = CheckText(&text);
  if (read.empty()) read = ReadYamlJob(text, response.mutable_spec(), &positions);
  AddProblems(read, problems);
  if (problems->empty()) {
    // Aliases may make a job larger than its text.
    const absl::Status small = CheckSpecSize(response.spec(), "the job");
    if (!small.ok()) AddProblem("", std::string(small.message()), {}, problems);
  }
  if (problems->empty()) ApplyOverrides(request.overrides(), response.mutable_spec(), problems);
  if (!problems->empty()) response.clear_spec();
  return response;
}

}  // namespace

void ParseJob(const Caller& caller, const v1::ParseJobRequest& request, Reply<v1::ParseJobResponse> reply,
              FairPool* user_pool) {
  absl::Status status = CheckTextRequest(request, request.overrides_size());
  if (!status.ok()) return reply(std::move(status));
  PostFor(user_pool, caller, request, std::move(reply), [&request](Reply<v1::ParseJobResponse> reply) {
    v1::ParseJobResponse response = Parse(request);
    if (request.text().size() > kLargeText) malloc_trim(0);
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
