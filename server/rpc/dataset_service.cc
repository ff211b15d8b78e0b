#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeDatasetService(const CallParts* calls, const RpcServer::Parts& parts,
                                                  const rpc::LocalData* local_data,
                                                  const rpc::Quotas* quotas) {
  auto service = std::make_unique<MethodTable>("tandem.v1.DatasetService", calls);
  service->Unary("CreateDataset", &rpc::CreateDataset, parts.registry, parts.uploads, local_data,
                 parts.user_pool);
  service->Unary("DeleteDataset", &rpc::DeleteDataset, parts.registry, parts.datasets, parts.user_pool);
  service->Unary("FetchDataset", &rpc::FetchDataset, parts.datasets, parts.remote, parts.user_pool);
  service->Unary("CreateUpload", &rpc::CreateUpload, parts.uploads, quotas, parts.user_pool);
  service->Unary("GetUpload", &rpc::GetUpload, parts.uploads, parts.user_pool);
  service->Unary("ListUploads", &rpc::ListUploads, parts.uploads, parts.user_pool);
  service->Unary("DeleteUpload", &rpc::DeleteUpload, parts.uploads, parts.user_pool);
  service->Sink("UploadFiles", &rpc::UploadFiles, parts.uploads, parts.user_pool);
  return service;
}

}  // namespace tandem
