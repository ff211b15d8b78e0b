#include "server/rpc/call_frame.h"
#include "server/rpc/handlers.h"
#include "server/rpc/serve_handler.h"
#include "server/rpc/services.h"
#include "tandem/v1/model_service.grpc.pb.h"

namespace tandem {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using grpc::ServerWriteReactor;

class ModelService final : public v1::ModelService::CallbackService {
 public:
  ModelService(const RpcContext* context, OpenCalls* calls) : context_(context), calls_(calls) {}

  ServerUnaryReactor* DescribeModel(CallbackServerContext* context, const v1::DescribeModelRequest* request,
                                    v1::ModelDescription* response) override {
    return ServeHandler(*context_, calls_, "DescribeModel", context, request, response, &rpc::DescribeModel);
  }
  ServerWriteReactor<v1::PredictResponse>* Predict(CallbackServerContext* context,
                                                   const v1::PredictRequest* request) override {
    return Stream<v1::PredictResponse>("Predict", context, request, &rpc::Predict);
  }
  ServerWriteReactor<v1::EvaluateResponse>* Evaluate(CallbackServerContext* context,
                                                     const v1::EvaluateRequest* request) override {
    return Stream<v1::EvaluateResponse>("Evaluate", context, request, &rpc::Evaluate);
  }

 private:
  template <typename Response, typename Request>
  ServerWriteReactor<Response>* Stream(absl::string_view method, CallbackServerContext* context,
                                       const Request* request,
                                       rpc::Source<Response> (*handler)(const RpcContext&, const Caller&,
                                                                        const Request&)) {
    return ServeStream<Response>(
        *context_, &calls_->streams, method, context, request,
        [this, handler](const Caller& caller, const Request& r) { return handler(*context_, caller, r); });
  }

  const RpcContext* const context_;
  OpenCalls* const calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeModelService(const RpcContext* context, OpenCalls* calls) {
  return std::make_unique<ModelService>(context, calls);
}

}  // namespace tandem
