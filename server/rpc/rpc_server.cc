#include "server/rpc/rpc_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/services.h"

namespace tandem {
namespace {

constexpr const char* kServices[] = {"",
                                     "tandem.v1.JobService",
                                     "tandem.v1.ModelService",
                                     "tandem.v1.DatasetService",
                                     "tandem.v1.SweepService",
                                     "tandem.v1.DaemonService"};

void TellHealthChecks(grpc::Server* server, bool serving) {
  for (const char* service : kServices) {
    server->GetHealthCheckService()->SetServingStatus(service, serving);
  }
}

absl::Status CannotListen(const ListenAddress& address, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", address.ToString(), ": ", why,
                   ". Choose another with --listen, or port 0 for any that is free"));
}

absl::string_view ExplainBindError(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the port is in use by another program, perhaps another tandemd";
    case EADDRNOTAVAIL:
      return "the host is not an address of this machine";
    case EACCES:
      return "ports below 1024 need a privilege";
    default:
      return strerror(error);
  }
}

}  // namespace

absl::Status RpcServer::CheckAddress(const ListenAddress& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (result != 0)
    return CannotListen(address, absl::StrCat("the host is not known: ", gai_strerror(result)));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr && error != 0; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int on = 1;
    // As gRPC does: a port whose connections are still being taken down is free.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    error = bind(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    close(fd);
  }
  freeaddrinfo(found);
  return error == 0 ? absl::OkStatus() : CannotListen(address, ExplainBindError(error));
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const ListenAddress& address, std::shared_ptr<grpc::ServerCredentials> credentials, RpcContext context) {
  std::unique_ptr<RpcServer> server(new RpcServer(address, std::move(context)));
  server->job_service_ = MakeJobService(&server->context_, &server->streams_);
  server->model_service_ = MakeModelService(&server->context_, &server->streams_);
  server->dataset_service_ = MakeDatasetService(&server->context_, &server->streams_);
  server->sweep_service_ = MakeSweepService(&server->context_);
  server->daemon_service_ = MakeDaemonService(&server->context_);
  // Process-wide; it concerns servers that are built later.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  // Otherwise two daemons could share a port without noticing, and each would get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // A client that is cut off is noticed, and idle watchers may ping as often as they reasonably like.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  builder.AddListeningPort(address.ToString(), std::move(credentials), &port);
  builder.RegisterService(server->job_service_.get());
  builder.RegisterService(server->model_service_.get());
  builder.RegisterService(server->dataset_service_.get());
  builder.RegisterService(server->sweep_service_.get());
  builder.RegisterService(server->daemon_service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) {
    return CannotListen(
        address, "the port is in use by another program, or the host is not an address of this machine");
  }
  server->address_.port = port;
  server->SetServing(true);
  return server;
}

RpcServer::~RpcServer() { Stop(absl::ZeroDuration()); }

void RpcServer::SetServing(bool serving) {
  MutexLock lock(&health_mutex_);
  if (!stopping_) TellHealthChecks(server_.get(), serving);
}

void RpcServer::EndServing() {
  MutexLock lock(&health_mutex_);
  stopping_ = true;
  TellHealthChecks(server_.get(), false);
}

void RpcServer::AwaitStreams(absl::Duration timeout) {
  EndServing();
  streams_.AwaitNone(timeout);
}

void RpcServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  EndServing();
  absl::Status status = context_.lifecycle->CheckServing();
  if (status.ok()) status = absl::UnavailableError("the server stops");
  streams_.EndAll(status);
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
  server_ = nullptr;
}

}  // namespace tandem
