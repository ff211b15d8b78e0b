#include "server/rpc/handlers.h"
#include "server/rpc/serve_handler.h"
#include "server/rpc/services.h"
#include "tandem/v1/daemon_service.grpc.pb.h"

namespace tandem {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class DaemonService final : public v1::DaemonService::CallbackService {
 public:
  DaemonService(const RpcContext* context, OpenCalls* calls) : context_(context), calls_(calls) {}

  ServerUnaryReactor* GetDaemon(CallbackServerContext* context, const v1::GetDaemonRequest* request,
                                v1::Daemon* response) override {
    return Unary("GetDaemon", context, request, response, &rpc::GetDaemon);
  }
  ServerUnaryReactor* ListDevices(CallbackServerContext* context, const v1::ListDevicesRequest* request,
                                  v1::ListDevicesResponse* response) override {
    return Unary("ListDevices", context, request, response, &rpc::ListDevices);
  }
  ServerUnaryReactor* ListDatasets(CallbackServerContext* context, const v1::ListDatasetsRequest* request,
                                   v1::ListDatasetsResponse* response) override {
    return Unary("ListDatasets", context, request, response, &rpc::ListDatasets);
  }
  ServerUnaryReactor* GetDataset(CallbackServerContext* context, const v1::GetDatasetRequest* request,
                                 v1::Dataset* response) override {
    return Unary("GetDataset", context, request, response, &rpc::GetDataset);
  }
  ServerUnaryReactor* DrainDevice(CallbackServerContext* context, const v1::DrainDeviceRequest* request,
                                  v1::Device* response) override {
    return Unary("DrainDevice", context, request, response, &rpc::DrainDevice);
  }
  ServerUnaryReactor* ResumeDevice(CallbackServerContext* context, const v1::ResumeDeviceRequest* request,
                                   v1::Device* response) override {
    return Unary("ResumeDevice", context, request, response, &rpc::ResumeDevice);
  }
  ServerUnaryReactor* ExcludeDevice(CallbackServerContext* context, const v1::ExcludeDeviceRequest* request,
                                    v1::Device* response) override {
    return Unary("ExcludeDevice", context, request, response, &rpc::ExcludeDevice);
  }
  ServerUnaryReactor* ListQueue(CallbackServerContext* context, const v1::ListQueueRequest* request,
                                v1::ListQueueResponse* response) override {
    return Unary("ListQueue", context, request, response, &rpc::ListQueue);
  }
  ServerUnaryReactor* CreateToken(CallbackServerContext* context, const v1::CreateTokenRequest* request,
                                  v1::CreateTokenResponse* response) override {
    return Unary("CreateToken", context, request, response, &rpc::CreateToken);
  }
  ServerUnaryReactor* ListTokens(CallbackServerContext* context, const v1::ListTokensRequest* request,
                                 v1::ListTokensResponse* response) override {
    return Unary("ListTokens", context, request, response, &rpc::ListTokens);
  }
  ServerUnaryReactor* RevokeToken(CallbackServerContext* context, const v1::RevokeTokenRequest* request,
                                  v1::Token* response) override {
    return Unary("RevokeToken", context, request, response, &rpc::RevokeToken);
  }
  ServerUnaryReactor* CreateBackup(CallbackServerContext* context, const v1::CreateBackupRequest* request,
                                   v1::Backup* response) override {
    return Unary("CreateBackup", context, request, response, &rpc::CreateBackup);
  }
  ServerUnaryReactor* ListBackups(CallbackServerContext* context, const v1::ListBackupsRequest* request,
                                  v1::ListBackupsResponse* response) override {
    return Unary("ListBackups", context, request, response, &rpc::ListBackups);
  }
  ServerUnaryReactor* Shutdown(CallbackServerContext* context, const v1::ShutdownRequest* request,
                               v1::ShutdownResponse* response) override {
    return Unary("Shutdown", context, request, response, &rpc::Shutdown);
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

std::unique_ptr<grpc::Service> MakeDaemonService(const RpcContext* context, OpenCalls* calls) {
  return std::make_unique<DaemonService>(context, calls);
}

}  // namespace tandem
