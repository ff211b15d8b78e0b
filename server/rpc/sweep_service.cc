#include "server/rpc/handlers.h"
#include "server/rpc/serve_handler.h"
#include "server/rpc/services.h"
#include "tandem/v1/sweep_service.grpc.pb.h"

namespace tandem {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class SweepService final : public v1::SweepService::CallbackService {
 public:
  SweepService(const RpcContext* context, OpenCalls* calls) : context_(context), calls_(calls) {}

  ServerUnaryReactor* CreateSweep(CallbackServerContext* context, const v1::CreateSweepRequest* request,
                                  v1::Sweep* response) override {
    return Unary("CreateSweep", context, request, response, &rpc::CreateSweep);
  }
  ServerUnaryReactor* GetSweep(CallbackServerContext* context, const v1::GetSweepRequest* request,
                               v1::Sweep* response) override {
    return Unary("GetSweep", context, request, response, &rpc::GetSweep);
  }
  ServerUnaryReactor* ListSweeps(CallbackServerContext* context, const v1::ListSweepsRequest* request,
                                 v1::ListSweepsResponse* response) override {
    return Unary("ListSweeps", context, request, response, &rpc::ListSweeps);
  }
  ServerUnaryReactor* CancelSweep(CallbackServerContext* context, const v1::CancelSweepRequest* request,
                                  v1::Sweep* response) override {
    return Unary("CancelSweep", context, request, response, &rpc::CancelSweep);
  }
  ServerUnaryReactor* DeleteSweep(CallbackServerContext* context, const v1::DeleteSweepRequest* request,
                                  google::protobuf::Empty* response) override {
    return Unary("DeleteSweep", context, request, response, &rpc::DeleteSweep);
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

std::unique_ptr<grpc::Service> MakeSweepService(const RpcContext* context, OpenCalls* calls) {
  return std::make_unique<SweepService>(context, calls);
}

}  // namespace tandem
