#include <malloc.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/job_file/job_text.h"
#include "proto/job_file/sweep_values.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"
#include "server/rpc/text_problems.h"
#include "server/sweeps/expansion.h"

namespace tandem::rpc {
namespace {

// A conversion of a value takes as long as the copy of so many bytes of a spec.
constexpr size_t kValueBytes = 4 << 10;

absl::StatusOr<v1::ParseSweepResponse> ParseText(const v1::ParseSweepRequest& request) {
  v1::ParseSweepResponse response;
  v1::Sweep* const sweep = response.mutable_sweep();
  TextProblems* const problems = response.mutable_problems();
  std::string text = request.text();
  FieldPositions positions;
  std::vector<ReadProblem> read = CheckText(&text);
  if (read.empty()) {
    read = ReadYamlMessage(text, "a sweep is a mapping: base:, and grid: or random:", sweep, &positions);
  }
  AddProblems(read, problems);
  if (problems->empty()) {
    // Aliases may make a sweep larger than its text.
    const absl::Status small = CheckSpecSize(*sweep, "the sweep");
    if (!small.ok()) AddProblem("", std::string(small.message()), {}, problems);
  }
  if (problems->empty()) ApplyOverrides(request.overrides(), sweep->mutable_base(), problems);
  if (problems->empty()) {
    // Each conversion copies the base.
    const size_t bytes = CountSweepValues(*sweep) * (sweep->base().ByteSizeLong() + kValueBytes);
    if (bytes > kMostSweepBytes) return SweepTooLarge();
    if (const std::optional<SweepValueProblem> wrong = ConvertSweepValues(sweep); wrong.has_value()) {
      AddProblem(wrong->path, wrong->text, positions[wrong->path], problems);
    }
  }
  if (!problems->empty()) response.clear_sweep();
  return response;
}

}  // namespace

void ParseSweep(const Caller& caller, const v1::ParseSweepRequest& request,
                Reply<v1::ParseSweepResponse> reply, FairPool* user_pool) {
  absl::Status status = CheckTextRequest(request, request.overrides_size());
  if (!status.ok()) return reply(std::move(status));
  PostFor(user_pool, caller, request, std::move(reply), [&request](Reply<v1::ParseSweepResponse> reply) {
    absl::StatusOr<v1::ParseSweepResponse> response = ParseText(request);
    if (request.text().size() > kLargeText) malloc_trim(0);
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
