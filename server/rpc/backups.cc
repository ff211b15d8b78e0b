#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void CreateBackup(const Caller& caller, const v1::CreateBackupRequest& request, Reply<v1::Backup> reply,
                  Backups* backups, FairPool* pool) {
  PostFor(pool, caller, request, std::move(reply),
          [backups](Reply<v1::Backup> reply) { reply(backups->Create(/*automatic=*/false)); });
}

void ListBackups(const Caller& caller, const v1::ListBackupsRequest& request,
                 Reply<v1::ListBackupsResponse> reply, const Backups* backups, FairPool* pool) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  PostFor(pool, caller, request, std::move(reply),
          [backups, page = *page](Reply<v1::ListBackupsResponse> reply) {
            absl::StatusOr<std::vector<v1::Backup>> found = backups->List();
            if (!found.ok()) return reply(found.status());
            v1::ListBackupsResponse response;
            response.set_next_page_token(AddPage(*std::move(found), 0, page, response.mutable_backups()));
            reply(std::move(response));
          });
}

}  // namespace tandem::rpc
