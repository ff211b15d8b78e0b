#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void CreateBackup(const RpcContext& context, const Caller& caller, const v1::CreateBackupRequest& request,
                  Reply<v1::Backup> reply) {
  PostToLook(context, caller, request, std::move(reply),
             [&context](Reply<v1::Backup> reply) { reply(context.backups->Create(/*automatic=*/false)); });
}

void ListBackups(const RpcContext& context, const Caller& caller, const v1::ListBackupsRequest& request,
                 Reply<v1::ListBackupsResponse> reply) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  PostToLook(
      context, caller, request, std::move(reply),
      [&context, page = *page](Reply<v1::ListBackupsResponse> reply) {
        absl::StatusOr<std::vector<v1::Backup>> backups = context.backups->List();
        if (!backups.ok()) return reply(backups.status());
        v1::ListBackupsResponse response;
        response.set_next_page_token(AddPage(*std::move(backups), 0, page, response.mutable_backups()));
        reply(std::move(response));
      });
}

}  // namespace tandem::rpc
