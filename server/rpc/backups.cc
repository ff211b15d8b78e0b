#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void CreateBackup(const RpcContext& context, const v1::CreateBackupRequest&, Reply<v1::Backup> reply) {
  context.pool->Post([&context, reply = std::move(reply)]() mutable {
    reply(context.backups->Create(/*automatic=*/false));
  });
}

void ListBackups(const RpcContext& context, const v1::ListBackupsRequest&,
                 Reply<v1::ListBackupsResponse> reply) {
  context.pool->Post([&context, reply = std::move(reply)]() mutable {
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
