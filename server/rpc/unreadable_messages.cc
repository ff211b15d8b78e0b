#include "server/rpc/unreadable_messages.h"

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <utility>
#include <vector>

namespace tandem {
namespace {

using grpc::experimental::InterceptionHookPoints;

// No handler answers UNIMPLEMENTED without a text: it is gRPC, which could not read the message.
class Explainer : public grpc::experimental::Interceptor {
 public:
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty()) {
        methods->ModifySendStatus(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                               "cannot read the message: it is none of this method, or "
                                               "nested more than 100 deep; make it by the "
                                               "daemon's version of the API, and less deep"));
      }
    }
    methods->Proceed();
  }
};

class ExplainerFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo*) override {
    return new Explainer();
  }
};

}  // namespace

void ExplainUnreadableMessages(grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<ExplainerFactory>());
  builder->experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace tandem
