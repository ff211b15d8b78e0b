#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for_user.h"
#include "server/sweeps/results.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

// Returns the id in "sweeps/<id>". INVALID_ARGUMENT for the field "name".
absl::StatusOr<std::string> ParseSweepName(const std::string& name) {
  if (name.empty()) return FieldError("name", "is required: the sweep's name, \"sweeps/<id>\"");
  std::string id = SweepId(name);
  if (id.empty()) {
    return FieldError("name", absl::StrCat("'", absl::CHexEscape(name.substr(0, 80)),
                                           "' is not the name of a sweep; write \"sweeps/<id>\""));
  }
  return id;
}

// Turns NOT_FOUND into a message that names the sweep; returns any other status unchanged.
absl::Status ExplainError(const absl::Status& status, const std::string& name) {
  if (!absl::IsNotFound(status)) return status;
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no sweep '", absl::CHexEscape(name.substr(0, 80)),
                                       "'; it may have been deleted")),
      "SWEEP_NOT_FOUND");
}

// PERMISSION_DENIED if the sweep belongs to another user and the caller is no administrator. NOT_FOUND: no
// such sweep.
absl::Status CheckOwner(const RpcContext& context, const Caller& caller, const std::string& id) {
  const absl::StatusOr<StoredSweep> sweep = context.jobs->GetSweep(id);
  if (!sweep.ok()) return ExplainError(sweep.status(), SweepName(id));
  return CheckIsOwner(caller, absl::StrCat("the sweep \"", sweep->sweep.name(), "\""), sweep->sweep.user(),
                      "NOT_YOUR_SWEEP");
}

// Calls `change(id, reply)` on the pool if the caller may change the sweep. Otherwise replies with the error.
template <typename Response, typename Request, typename Change>
void WithOwnSweep(const RpcContext& context, const Caller& caller, const Request& request,
                  Reply<Response> reply, Change change) {
  const absl::StatusOr<std::string> id = ParseSweepName(request.name());
  if (!id.ok()) return reply(id.status());
  PostToLook(context, caller, request, std::move(reply),
             [&context, caller, id = *id, change = std::move(change)](Reply<Response> reply) mutable {
               if (absl::Status status = CheckOwner(context, caller, id); !status.ok()) {
                 reply(std::move(status));
               } else {
                 change(id, std::move(reply));
               }
             });
}

}  // namespace

void GetSweep(const RpcContext& context, const Caller& caller, const v1::GetSweepRequest& request,
              Reply<v1::Sweep> reply) {
  const absl::StatusOr<std::string> id = ParseSweepName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  PostToLook(context, caller, request, std::move(reply),
             [&context, &request, id = *id](Reply<v1::Sweep> reply) {
               const absl::StatusOr<StoredSweep> sweep = context.jobs->GetSweep(id);
               if (sweep.ok()) {
                 reply(DescribeSweep(*sweep));
               } else {
                 reply(ExplainError(sweep.status(), request.name()));
               }
             });
}

void ListSweeps(const RpcContext& context, const Caller& caller, const v1::ListSweepsRequest& request,
                Reply<v1::ListSweepsResponse> reply) {
  FieldViolations violations;
  const int size = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (size < 1 || size > kMaxPageSize) {
    violations.Add("page_size",
                   absl::StrCat("is ", request.page_size(), "; it must be from 1 to ", kMaxPageSize));
  }
  // The number of the previous page's last sweep.
  int64_t before = 0;
  if (!request.page_token().empty() && (!absl::SimpleAtoi(request.page_token(), &before) || before < 1)) {
    violations.Add(
        "page_token",
        "is not a page_token of this method; give the next_page_token of an earlier page, or none");
  }
  if (absl::Status status = violations.ToStatus(); !status.ok()) {
    reply(std::move(status));
    return;
  }
  PostToLook(context, caller, request, std::move(reply),
             [&context, size, before](Reply<v1::ListSweepsResponse> reply) {
               const absl::StatusOr<SweepPage> page = context.jobs->ListSweeps(before, size);
               if (!page.ok()) {
                 reply(page.status());
                 return;
               }
               v1::ListSweepsResponse response;
               for (const ListedSweep& listed : page->sweeps) *response.add_sweeps() = DescribeSweep(listed);
               if (page->next_before > 0) response.set_next_page_token(absl::StrCat(page->next_before));
               reply(std::move(response));
             });
}

void CancelSweep(const RpcContext& context, const Caller& caller, const v1::CancelSweepRequest& request,
                 Reply<v1::Sweep> reply) {
  WithOwnSweep<v1::Sweep>(
      context, caller, request, std::move(reply), [&context](const std::string& id, Reply<v1::Sweep> reply) {
        context.jobs->CancelSweep(
            id, [id, reply = std::move(reply)](const absl::StatusOr<StoredSweep>& sweep) mutable {
              if (sweep.ok()) {
                reply(DescribeSweep(*sweep));
              } else {
                reply(ExplainError(sweep.status(), SweepName(id)));
              }
            });
      });
}

void DeleteSweep(const RpcContext& context, const Caller& caller, const v1::DeleteSweepRequest& request,
                 Reply<google::protobuf::Empty> reply) {
  WithOwnSweep<google::protobuf::Empty>(
      context, caller, request, std::move(reply),
      [&context](const std::string& id, Reply<google::protobuf::Empty> reply) {
        context.jobs->DeleteSweep(id, [id, reply = std::move(reply)](const absl::Status& status) mutable {
          reply(EmptyOr(ExplainError(status, SweepName(id))));
        });
      });
}

}  // namespace tandem::rpc
