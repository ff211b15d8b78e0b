#include "server/rpc/handlers.h"
#include "server/rpc/method_table.h"
#include "server/rpc/services.h"

namespace tandem {

std::unique_ptr<grpc::Service> MakeDatasetService(const RpcContext* context, OpenCalls* calls) {
  auto service = std::make_unique<MethodTable>("tandem.v1.DatasetService", context, calls);
  service->Unary("CreateDataset", &rpc::CreateDataset);
  service->Unary("DeleteDataset", &rpc::DeleteDataset);
  service->Unary("FetchDataset", &rpc::FetchDataset);
  service->Unary("CreateUpload", &rpc::CreateUpload);
  service->Unary("GetUpload", &rpc::GetUpload);
  service->Unary("ListUploads", &rpc::ListUploads);
  service->Unary("DeleteUpload", &rpc::DeleteUpload);
  service->Sink("UploadFiles", &rpc::UploadFiles);
  return service;
}

}  // namespace tandem
