#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

absl::StatusOr<JobQuery> ParseQuery(const v1::ListJobsRequest& request) {
  FieldViolations violations;
  JobQuery query;
  query.page_token = request.page_token();
  query.page_size = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (query.page_size < 1 || query.page_size > kMaxPageSize) {
    violations.Add("page_size",
                   absl::StrCat("is ", request.page_size(), "; it must be from 1 to ", kMaxPageSize));
  }
  for (int i = 0; i < request.states_size(); ++i) {
    const int state = request.states(i);
    if (!v1::JobState_IsValid(state) || state == v1::JOB_STATE_UNSPECIFIED) {
      violations.Add(absl::StrCat("states[", i, "]"),
                     absl::StrCat("is ", state, ", which is not a state of a job"));
    } else {
      query.states.push_back(request.states(i));
    }
  }
  const std::string& order = request.order_by();
  if (order.empty() || order == "create_time desc") {
    query.order = JobQuery::Order::kCreateTime;
    query.descending = true;
  } else if (order == "create_time") {
    query.order = JobQuery::Order::kCreateTime;
    query.descending = false;
  } else if (order == "name" || order == "name desc") {
    query.order = JobQuery::Order::kName;
    query.descending = order != "name";
  } else {
    violations.Add(
        "order_by",
        absl::StrCat("is '", absl::CHexEscape(order.substr(0, 80)),
                     "'; it must be \"create_time\" or \"name\", optionally followed by \" desc\""));
  }
  if (absl::Status status = violations.ToStatus(); !status.ok()) return status;
  return query;
}

void List(const JobQuery& query, Reply<v1::ListJobsResponse> reply, JobMachine* jobs) {
  absl::StatusOr<JobPage> page = jobs->List(query);
  if (!page.ok()) {
    const bool token = absl::IsInvalidArgument(page.status());
    reply(token ? FieldError("page_token", page.status().message()) : page.status());
    return;
  }
  v1::ListJobsResponse response;
  for (v1::Job& job : page->jobs) *response.add_jobs() = std::move(job);
  response.set_next_page_token(page->next_page_token);
  reply(std::move(response));
}

}  // namespace

void ListJobs(const Caller& caller, const v1::ListJobsRequest& request, Reply<v1::ListJobsResponse> reply,
              JobMachine* jobs, FairPool* pool) {
  absl::StatusOr<JobQuery> query = ParseQuery(request);
  if (!query.ok()) return reply(query.status());
  PostFor(pool, caller, request, std::move(reply),
          [jobs, query = *std::move(query)](Reply<v1::ListJobsResponse> reply) {
            List(query, std::move(reply), jobs);
          });
}

}  // namespace tandem::rpc
