#include <iterator>
#include <utility>
#include <vector>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultQueuePageSize = 1000;
constexpr int kMaxQueuePageSize = 10000;

}  // namespace

void ListQueue(const Caller& caller, const v1::ListQueueRequest& request, Reply<v1::ListQueueResponse> reply,
               Scheduler* scheduler, FairPool* pool) {
  const absl::StatusOr<Page> page = PageOf(request, kDefaultQueuePageSize, kMaxQueuePageSize);
  if (!page.ok()) return reply(page.status());
  // Explaining a long queue takes a while.
  PostFor(pool, caller, request, std::move(reply),
          [scheduler, page = *page](Reply<v1::ListQueueResponse> reply) {
            // One more job tells if another page exists.
            v1::ListQueueResponse response =
                scheduler->ListQueue(static_cast<int64_t>(page.begin), static_cast<int64_t>(page.size) + 1);
            std::vector<v1::QueuedJob> jobs(std::make_move_iterator(response.mutable_jobs()->begin()),
                                            std::make_move_iterator(response.mutable_jobs()->end()));
            response.clear_jobs();
            response.set_next_page_token(AddPage(std::move(jobs), page.begin, page, response.mutable_jobs()));
            reply(std::move(response));
          });
}

}  // namespace tandem::rpc
