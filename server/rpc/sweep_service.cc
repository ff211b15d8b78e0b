#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeSweepService(const CallParts* calls, const RpcServer::Parts& parts,
                                                const rpc::Quotas* quotas, const rpc::JobRequests* requests) {
  auto service = std::make_unique<MethodTable>("tandem.v1.SweepService", calls);
  service->Unary("CreateSweep", &rpc::CreateSweep, parts.jobs, parts.lifecycle, quotas, requests,
                 parts.uploads, parts.user_pool);
  service->Unary("ParseSweep", &rpc::ParseSweep, parts.user_pool);
  service->Unary("GetSweep", &rpc::GetSweep, parts.jobs, parts.pool);
  service->Unary("ListSweeps", &rpc::ListSweeps, parts.jobs, parts.pool);
  service->Unary("CancelSweep", &rpc::CancelSweep, parts.jobs, parts.pool);
  service->Unary("DeleteSweep", &rpc::DeleteSweep, parts.jobs, parts.pool);
  return service;
}

}  // namespace tandem
