#include "server/rpc/text_problems.h"

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "proto/job_file/field_setting.h"
#include "server/rpc/job_requests.h"

namespace tandem::rpc {
namespace {

constexpr int kMostOverrides = 100;

}  // namespace

absl::Status CheckTextRequest(const google::protobuf::Message& request, int overrides) {
  TANDEM_RETURN_IF_ERROR(CheckSpecSize(request, "text"));
  if (overrides <= kMostOverrides) return absl::OkStatus();
  return FieldError("overrides",
                    absl::StrCat("has ", overrides, " elements; at most ", kMostOverrides, " are allowed"));
}

void AddProblem(const std::string& field, const std::string& text, TextPosition position,
                TextProblems* problems) {
  v1::JobTextProblem* const problem = problems->Add();
  problem->set_field(field);
  problem->set_description(text);
  problem->set_line(position.line);
  problem->set_column(position.column);
}

void AddProblems(const std::vector<ReadProblem>& read, TextProblems* problems) {
  for (const ReadProblem& problem : read) AddProblem(problem.path, problem.text, problem.position, problems);
}

void ApplyOverrides(const google::protobuf::RepeatedPtrField<std::string>& overrides, v1::JobSpec* spec,
                    TextProblems* problems) {
  for (int i = 0; i < overrides.size(); ++i) {
    absl::Status set = ApplyOverride(overrides.Get(i), spec);
    if (set.ok()) set = CheckSpecSize(*spec, "the job");
    if (set.ok()) continue;
    AddProblem(absl::StrCat("overrides[", i, "]"), std::string(set.message()), {}, problems);
    // Do not copy a job that only grows again and again.
    if (absl::IsResourceExhausted(set)) return;
  }
}

}  // namespace tandem::rpc
