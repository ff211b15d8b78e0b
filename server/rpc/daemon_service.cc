#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeDaemonService(const RpcContext* context, OpenCalls* calls) {
  auto service = std::make_unique<MethodTable>("tandem.v1.DaemonService", context, calls);
  service->Unary("GetDaemon", &rpc::GetDaemon);
  service->Unary("ListDevices", &rpc::ListDevices);
  service->Unary("ListDatasets", &rpc::ListDatasets);
  service->Unary("GetDataset", &rpc::GetDataset);
  service->Unary("DrainDevice", &rpc::DrainDevice);
  service->Unary("ResumeDevice", &rpc::ResumeDevice);
  service->Unary("ExcludeDevice", &rpc::ExcludeDevice);
  service->Unary("ListQueue", &rpc::ListQueue);
  service->Unary("CreateToken", &rpc::CreateToken);
  service->Unary("ListTokens", &rpc::ListTokens);
  service->Unary("RevokeToken", &rpc::RevokeToken);
  service->Unary("CreateBackup", &rpc::CreateBackup);
  service->Unary("ListBackups", &rpc::ListBackups);
  service->Unary("Shutdown", &rpc::Shutdown);
  return service;
}

}  // namespace tandem
