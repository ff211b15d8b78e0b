#ifndef TANDEM_SERVER_RPC_SERVICES_H_
#define TANDEM_SERVER_RPC_SERVICES_H_

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/open_calls.h"
#include "server/rpc/rpc_context.h"

namespace tandem {

// The public services, which pass each call to its handler. Both arguments must outlive the services.
std::unique_ptr<grpc::Service> MakeJobService(const RpcContext* context, OpenCalls* calls);
std::unique_ptr<grpc::Service> MakeModelService(const RpcContext* context, OpenCalls* calls);
std::unique_ptr<grpc::Service> MakeDatasetService(const RpcContext* context, OpenCalls* calls);
std::unique_ptr<grpc::Service> MakeSweepService(const RpcContext* context, OpenCalls* calls);
std::unique_ptr<grpc::Service> MakeDaemonService(const RpcContext* context, OpenCalls* calls);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_SERVICES_H_
