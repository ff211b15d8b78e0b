#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeDaemonService(const CallParts* calls, const RpcServer::Parts& parts) {
  auto service = std::make_unique<MethodTable>("tandem.v1.DaemonService", calls);
  service->Unary("GetDaemon", &rpc::GetDaemon, &parts.daemon);
  service->Unary("ListDevices", &rpc::ListDevices, parts.scheduler, parts.refresh_gpu, parts.partitions,
                 parts.pool);
  service->Unary("ListDatasets", &rpc::ListDatasets, parts.datasets, parts.user_pool);
  service->Unary("GetDataset", &rpc::GetDataset, parts.datasets, parts.user_pool);
  service->Unary("DrainDevice", &rpc::DrainDevice, parts.scheduler);
  service->Unary("ResumeDevice", &rpc::ResumeDevice, parts.scheduler);
  service->Unary("ExcludeDevice", &rpc::ExcludeDevice, parts.scheduler);
  service->Unary("ListQueue", &rpc::ListQueue, parts.scheduler, parts.pool);
  service->Unary("CreateToken", &rpc::CreateToken, parts.tokens, parts.scheduler);
  service->Unary("ListTokens", &rpc::ListTokens, parts.tokens);
  service->Unary("RevokeToken", &rpc::RevokeToken, parts.tokens, parts.scheduler);
  service->Unary("CreateBackup", &rpc::CreateBackup, parts.backups, parts.pool);
  service->Unary("ListBackups", &rpc::ListBackups, parts.backups, parts.pool);
  service->Unary("Shutdown", &rpc::Shutdown, parts.lifecycle, parts.drain, parts.pool);
  return service;
}

}  // namespace tandem
