#ifndef TANDEM_SERVER_RPC_SERVICES_H_
#define TANDEM_SERVER_RPC_SERVICES_H_

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/admission/memo.h"
#include "server/rpc/call_parts.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/local_data.h"
#include "server/rpc/quotas.h"
#include "server/rpc/rpc_server.h"

namespace tandem {

// The public services, which pass each call to its handler with the handler's dependencies. All arguments
// must outlive the services. `checked_artifacts` holds the artifacts whose checksums were right.
std::unique_ptr<grpc::Service> MakeJobService(const CallParts* calls, const RpcServer::Parts& parts,
                                              const rpc::LocalData* local_data, const rpc::Quotas* quotas,
                                              const rpc::JobRequests* requests,
                                              Memo<bool>* checked_artifacts);
std::unique_ptr<grpc::Service> MakeModelService(const CallParts* calls, const RpcServer::Parts& parts,
                                                const rpc::LocalData* local_data);
std::unique_ptr<grpc::Service> MakeDatasetService(const CallParts* calls, const RpcServer::Parts& parts,
                                                  const rpc::LocalData* local_data,
                                                  const rpc::Quotas* quotas);
std::unique_ptr<grpc::Service> MakeSweepService(const CallParts* calls, const RpcServer::Parts& parts,
                                                const rpc::Quotas* quotas, const rpc::JobRequests* requests);
std::unique_ptr<grpc::Service> MakeDaemonService(const CallParts* calls, const RpcServer::Parts& parts);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_SERVICES_H_
