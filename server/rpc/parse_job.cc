#include <malloc.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "proto/job_file/field_setting.h"
#include "proto/job_file/job_text.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

constexpr int kMostOverrides = 100;
constexpr size_t kLargeText = 64 << 10;

v1::ParseJobResponse Parse(const v1::ParseJobRequest& request) {
  v1::ParseJobResponse response;
  const auto report = [&response](const std::string& field, const std::string& text, TextPosition position) {
    v1::JobTextProblem* const problem = response.add_problems();
    problem->set_field(field);
    problem->set_description(text);
    problem->set_line(position.line);
    problem->set_column(position.column);
  };
  std::string text = request.text();
  FieldPositions positions;
  std::vector<ReadProblem> problems = CheckText(&text);
  if (problems.empty()) problems = ReadYamlJob(text, response.mutable_spec(), &positions);
  for (const ReadProblem& problem : problems) report(problem.path, problem.text, problem.position);
  if (problems.empty()) {
    // Aliases may make a job larger than its text.
    const absl::Status small = CheckSpecSize(response.spec(), "the job");
    if (!small.ok()) report("", std::string(small.message()), {});
  }
  for (int i = 0; problems.empty() && i < request.overrides_size(); ++i) {
    absl::Status set = ApplyOverride(request.overrides(i), response.mutable_spec());
    if (set.ok()) set = CheckSpecSize(response.spec(), "the job");
    if (set.ok()) continue;
    report(absl::StrCat("overrides[", i, "]"), std::string(set.message()), {});
    // Do not copy a job that only grows again and again.
    if (absl::IsResourceExhausted(set)) break;
  }
  if (response.problems_size() > 0) response.clear_spec();
  return response;
}

}  // namespace

void ParseJob(const Caller& caller, const v1::ParseJobRequest& request, Reply<v1::ParseJobResponse> reply,
              FairPool* user_pool) {
  absl::Status status = CheckSpecSize(request, "text");
  if (status.ok() && request.overrides_size() > kMostOverrides) {
    status = FieldError("overrides", absl::StrCat("has ", request.overrides_size(), " elements; at most ",
                                                  kMostOverrides, " are allowed"));
  }
  if (!status.ok()) return reply(std::move(status));
  PostFor(user_pool, caller, request, std::move(reply), [&request](Reply<v1::ParseJobResponse> reply) {
    v1::ParseJobResponse response = Parse(request);
    // Otherwise each thread would keep the memory of the text's nodes.
    if (request.text().size() > kLargeText) malloc_trim(0);
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
