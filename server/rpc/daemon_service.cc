#include "server/rpc/call_frame.h"
#include "server/rpc/handlers.h"
#include "server/rpc/services.h"
#include "tandem/v1/daemon_service.grpc.pb.h"

namespace tandem {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class DaemonService final : public v1::DaemonService::CallbackService {
 public:
  explicit DaemonService(const RpcContext* context) : context_(context) {}

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
  ServerUnaryReactor* Shutdown(CallbackServerContext* context, const v1::ShutdownRequest* request,
                               v1::ShutdownResponse* response) override {
    return Unary("Shutdown", context, request, response, &rpc::Shutdown);
  }

 private:
  template <typename Request, typename Response>
  ServerUnaryReactor* Unary(absl::string_view method, CallbackServerContext* context, const Request* request,
                            Response* response,
                            void (*handler)(const RpcContext&, const Request&, Reply<Response>)) {
    return ServeUnary(*context_->lifecycle, method, context, request, response,
                      [this, handler](const Request& r, Reply<Response> reply) {
                        handler(*context_, r, std::move(reply));
                      });
  }

  const RpcContext* const context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDaemonService(const RpcContext* context) {
  return std::make_unique<DaemonService>(context);
}

}  // namespace tandem
