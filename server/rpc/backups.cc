#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void CreateBackup(const RpcContext& context, const Caller& caller, const v1::CreateBackupRequest& request,
                  Reply<v1::Backup> reply) {
  PostToLook(context, caller, request, std::move(reply),
             [&context](Reply<v1::Backup> reply) { reply(context.backups->Create(/*automatic=*/false)); });
}

void ListBackups(const RpcContext& context, const Caller& caller, const v1::ListBackupsRequest& request,
                 Reply<v1::ListBackupsResponse> reply) {
  PostToLook(context, caller, request, std::move(reply), [&context](Reply<v1::ListBackupsResponse> reply) {
    absl::StatusOr<std::vector<v1::Backup>> backups = context.backups->List();
    if (!backups.ok()) {
      reply(backups.status());
      return;
    }
    v1::ListBackupsResponse response;
    for (v1::Backup& backup : *backups) *response.add_backups() = std::move(backup);
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
