#include "server/rpc/call_frame.h"
#include "server/rpc/handlers.h"
#include "server/rpc/serve_handler.h"
#include "server/rpc/services.h"
#include "server/rpc/sink_frame.h"
#include "tandem/v1/dataset_service.grpc.pb.h"

namespace tandem {
namespace {

using google::protobuf::Empty;
using grpc::CallbackServerContext;
using grpc::ServerReadReactor;
using grpc::ServerUnaryReactor;

class DatasetService final : public v1::DatasetService::CallbackService {
 public:
  DatasetService(const RpcContext* context, OpenCalls* calls) : context_(context), calls_(calls) {}

  ServerUnaryReactor* CreateDataset(CallbackServerContext* context, const v1::CreateDatasetRequest* request,
                                    v1::Dataset* response) override {
    return Unary("CreateDataset", context, request, response, &rpc::CreateDataset);
  }
  ServerUnaryReactor* DeleteDataset(CallbackServerContext* context, const v1::DeleteDatasetRequest* request,
                                    Empty* response) override {
    return Unary("DeleteDataset", context, request, response, &rpc::DeleteDataset);
  }
  ServerUnaryReactor* FetchDataset(CallbackServerContext* context, const v1::FetchDatasetRequest* request,
                                   v1::Dataset* response) override {
    return Unary("FetchDataset", context, request, response, &rpc::FetchDataset);
  }
  ServerUnaryReactor* CreateUpload(CallbackServerContext* context, const v1::CreateUploadRequest* request,
                                   v1::Upload* response) override {
    return Unary("CreateUpload", context, request, response, &rpc::CreateUpload);
  }
  ServerUnaryReactor* GetUpload(CallbackServerContext* context, const v1::GetUploadRequest* request,
                                v1::Upload* response) override {
    return Unary("GetUpload", context, request, response, &rpc::GetUpload);
  }
  ServerUnaryReactor* ListUploads(CallbackServerContext* context, const v1::ListUploadsRequest* request,
                                  v1::ListUploadsResponse* response) override {
    return Unary("ListUploads", context, request, response, &rpc::ListUploads);
  }
  ServerUnaryReactor* DeleteUpload(CallbackServerContext* context, const v1::DeleteUploadRequest* request,
                                   Empty* response) override {
    return Unary("DeleteUpload", context, request, response, &rpc::DeleteUpload);
  }
  ServerReadReactor<v1::UploadFilesRequest>* UploadFiles(CallbackServerContext* context,
                                                         v1::Upload* response) override {
    return ServeSink<v1::UploadFilesRequest>(
        *context_, &calls_->streams, "UploadFiles", context, response,
        [this](const Caller& caller) { return rpc::UploadFiles(*context_, caller); });
  }

 private:
  template <typename... Arguments>
  ServerUnaryReactor* Unary(Arguments... arguments) {
    return ServeHandler(*context_, calls_, arguments...);
  }

  const RpcContext* const context_;
  OpenCalls* const calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDatasetService(const RpcContext* context, OpenCalls* calls) {
  return std::make_unique<DatasetService>(context, calls);
}

}  // namespace tandem
