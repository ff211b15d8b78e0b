#include "client/lib/fake_daemon.h"

#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tandem::client {

FakeDaemon::FakeDaemon(int port, const std::shared_ptr<grpc::ServerCredentials>& credentials,
                       const std::function<void(FakeDaemon&)>& set_up) {
  if (set_up) set_up(*this);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(16 << 20);  // The daemon's limit.
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), credentials, &port_);
  builder.RegisterService(static_cast<v1::JobService::Service*>(this));
  builder.RegisterService(static_cast<v1::ModelService::Service*>(this));
  builder.RegisterService(static_cast<v1::DatasetService::Service*>(this));
  builder.RegisterService(static_cast<v1::SweepService::Service*>(this));
  builder.RegisterService(static_cast<v1::DaemonService::Service*>(this));
  server_ = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

std::unique_ptr<Client> FakeDaemon::Connect() const {
  ConnectionOptions options;
  options.address = address();
  return Client::Create(options).value();
}

grpc::Status DetailedStatus(grpc::StatusCode code, const std::string& message,
                            const google::protobuf::Message& detail) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  status.add_details()->PackFrom(detail);
  return {code, message, status.SerializeAsString()};
}

grpc::Status BadRequestStatus(const std::string& message,
                              const std::vector<std::pair<std::string, std::string>>& violations) {
  google::rpc::BadRequest bad_request;
  for (const auto& [field, description] : violations) {
    auto* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(description);
  }
  return DetailedStatus(grpc::StatusCode::INVALID_ARGUMENT, message, bad_request);
}

grpc::Status UnavailableStatus(const std::string& message) {
  google::rpc::ErrorInfo info;
  info.set_reason("UNAVAILABLE");
  info.set_domain("tandem");
  return DetailedStatus(grpc::StatusCode::UNAVAILABLE, message, info);
}

}  // namespace tandem::client
