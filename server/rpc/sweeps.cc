#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for.h"
#include "server/sweeps/results.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultPageSize = 50;

// Returns the id in "sweeps/<id>". INVALID_ARGUMENT for the field "name".
absl::StatusOr<std::string> ParseSweepName(const std::string& name) {
  return CheckName("sweep", name, SweepId(name));
}

absl::Status ExplainError(const absl::Status& status, const std::string& name) {
  return ExplainNotFound(status, "sweep", name, "SWEEP_NOT_FOUND");
}

// Returns the description of a sweep that was found, or an error that names the sweep.
absl::StatusOr<v1::Sweep> Described(const absl::StatusOr<StoredSweep>& sweep, const std::string& name) {
  if (!sweep.ok()) return ExplainError(sweep.status(), name);
  return DescribeSweep(*sweep);
}

// PERMISSION_DENIED if the sweep belongs to another user and the caller is no administrator. NOT_FOUND: no
// such sweep.
absl::Status CheckOwner(const Caller& caller, const std::string& id, JobMachine* jobs) {
  const absl::StatusOr<StoredSweep> sweep = jobs->GetSweep(id);
  if (!sweep.ok()) return ExplainError(sweep.status(), SweepName(id));
  return CheckIsOwner(caller, absl::StrCat("the sweep \"", sweep->sweep.name(), "\""), sweep->sweep.user(),
                      "NOT_YOUR_SWEEP");
}

// Calls `change(id, reply)` on the pool if the caller may change the sweep. Otherwise replies with the error.
template <typename Response, typename Request, typename Change>
void WithOwnSweep(const Caller& caller, const Request& request, Reply<Response> reply, JobMachine* jobs,
                  FairPool* pool, Change change) {
  const absl::StatusOr<std::string> id = ParseSweepName(request.name());
  if (!id.ok()) return reply(id.status());
  PostFor(pool, caller, request, std::move(reply),
          [jobs, caller, id = *id, change = std::move(change)](Reply<Response> reply) mutable {
            if (absl::Status status = CheckOwner(caller, id, jobs); !status.ok()) {
              reply(std::move(status));
            } else {
              change(id, std::move(reply));
            }
          });
}

}  // namespace

void GetSweep(const Caller& caller, const v1::GetSweepRequest& request, Reply<v1::Sweep> reply,
              JobMachine* jobs, FairPool* pool) {
  const absl::StatusOr<std::string> id = ParseSweepName(request.name());
  if (!id.ok()) return reply(id.status());
  PostFor(pool, caller, request, std::move(reply), [jobs, &request, id = *id](Reply<v1::Sweep> reply) {
    reply(Described(jobs->GetSweep(id), request.name()));
  });
}

void ListSweeps(const Caller& caller, const v1::ListSweepsRequest& request,
                Reply<v1::ListSweepsResponse> reply, JobMachine* jobs, FairPool* pool) {
  // A token is the number of the earlier page's last sweep.
  const absl::StatusOr<Page> page = PageOf(request, kDefaultPageSize);
  if (!page.ok()) return reply(page.status());
  PostFor(pool, caller, request, std::move(reply), [jobs, page = *page](Reply<v1::ListSweepsResponse> reply) {
    const absl::StatusOr<SweepPage> sweeps =
        jobs->ListSweeps(static_cast<int64_t>(page.begin), static_cast<int>(page.size));
    if (!sweeps.ok()) return reply(sweeps.status());
    v1::ListSweepsResponse response;
    for (const ListedSweep& listed : sweeps->sweeps) *response.add_sweeps() = DescribeSweep(listed);
    if (sweeps->next_before > 0) response.set_next_page_token(absl::StrCat(sweeps->next_before));
    reply(std::move(response));
  });
}

void CancelSweep(const Caller& caller, const v1::CancelSweepRequest& request, Reply<v1::Sweep> reply,
                 JobMachine* jobs, FairPool* pool) {
  WithOwnSweep<v1::Sweep>(
      caller, request, std::move(reply), jobs, pool, [jobs](const std::string& id, Reply<v1::Sweep> reply) {
        jobs->CancelSweep(id,
                          [id, reply = std::move(reply)](const absl::StatusOr<StoredSweep>& sweep) mutable {
                            reply(Described(sweep, SweepName(id)));
                          });
      });
}

void DeleteSweep(const Caller& caller, const v1::DeleteSweepRequest& request,
                 Reply<google::protobuf::Empty> reply, JobMachine* jobs, FairPool* pool) {
  WithOwnSweep<google::protobuf::Empty>(
      caller, request, std::move(reply), jobs, pool,
      [jobs](const std::string& id, Reply<google::protobuf::Empty> reply) {
        jobs->DeleteSweep(id, [id, reply = std::move(reply)](const absl::Status& status) mutable {
          reply(EmptyOr(ExplainError(status, SweepName(id))));
        });
      });
}

}  // namespace tandem::rpc
