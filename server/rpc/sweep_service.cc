#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeSweepService(const RpcContext* context, OpenCalls* calls) {
  auto service = std::make_unique<MethodTable>("tandem.v1.SweepService", context, calls);
  service->Unary("CreateSweep", &rpc::CreateSweep);
  service->Unary("GetSweep", &rpc::GetSweep);
  service->Unary("ListSweeps", &rpc::ListSweeps);
  service->Unary("CancelSweep", &rpc::CancelSweep);
  service->Unary("DeleteSweep", &rpc::DeleteSweep);
  return service;
}

}  // namespace tandem
