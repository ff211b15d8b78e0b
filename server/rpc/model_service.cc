#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeModelService(const RpcContext* context, OpenCalls* calls) {
  auto service = std::make_unique<MethodTable>("tandem.v1.ModelService", context, calls);
  service->Unary("DescribeModel", &rpc::DescribeModel);
  service->Stream("Predict", &rpc::Predict, RpcServer::kMaxReceiveBytes);
  service->Stream("Evaluate", &rpc::Evaluate, kMostRequestBytes);
  return service;
}

}  // namespace tandem
