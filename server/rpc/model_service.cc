#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeModelService(const CallParts* calls, const RpcServer::Parts& parts,
                                                const rpc::LocalData* local_data) {
  auto service = std::make_unique<MethodTable>("tandem.v1.ModelService", calls);
  service->Unary("DescribeModel", &rpc::DescribeModel, parts.jobs, parts.datasets, local_data,
                 parts.user_pool);
  service->Stream("Predict", {.most_bytes = RpcServer::kMaxReceiveBytes}, &rpc::Predict, parts.jobs,
                  parts.scheduler, parts.models, parts.datasets, local_data, parts.pool, parts.user_pool);
  service->Stream("Evaluate", {.most_bytes = kMostRequestBytes}, &rpc::Evaluate, parts.jobs, parts.scheduler,
                  parts.models, parts.datasets, local_data, parts.user_pool);
  service->Stream("ExportModel", {}, &rpc::ExportModel, parts.jobs, parts.scheduler, parts.models,
                  parts.pool);
  return service;
}

}  // namespace tandem
