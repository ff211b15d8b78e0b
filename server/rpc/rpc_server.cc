#include "server/rpc/rpc_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/own_services.h"
#include "server/rpc/services.h"
#include "server/workers/uncompressed_server.h"

namespace tandem {
namespace {

constexpr const char* kServices[] = {"",
                                     "tandem.v1.JobService",
                                     "tandem.v1.ModelService",
                                     "tandem.v1.DatasetService",
                                     "tandem.v1.SweepService",
                                     "tandem.v1.DaemonService"};

// The limits of one client and of all clients. See LIMITS.md.
constexpr int kMaxStreamsOfAConnection = 2048;
constexpr int kMaxMetadataBytes = 16 << 10;
constexpr int kHandshakeMilliseconds = 20'000;
constexpr int kIdleMilliseconds = 30 * 60 * 1000;
// The part of the daemon's memory for gRPC's buffers, and its bounds.
constexpr int64_t kBufferedPart = 8;
constexpr int64_t kLeastBufferedBytes = int64_t{32} << 20;
constexpr int64_t kMostBufferedBytes = int64_t{1} << 30;

// Returns the processor time that this process has used.
absl::Duration ProcessorTime() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

void SetLimits(int64_t memory_bytes, grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsOfAConnection);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // Covers a connection's start up to its first settings, TLS included. Silent clients are closed.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  // For connections without a call. Clients reconnect by themselves.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  // The limit on all connections' buffers. If they are full, gRPC ends calls, instead of the daemon running
  // out of memory.
  grpc::ResourceQuota quota("tandem");
  quota.Resize(static_cast<size_t>(
      memory_bytes <= 0 ? kMostBufferedBytes
                        : std::clamp(memory_bytes / kBufferedPart, kLeastBufferedBytes, kMostBufferedBytes)));
  builder->SetResourceQuota(quota);
}

void TellHealthChecks(grpc::Server* server, bool serving) {
  for (const char* service : kServices) {
    server->GetHealthCheckService()->SetServingStatus(service, serving);
  }
}

absl::Status CannotListen(const ListenAddress& address, absl::string_view option, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.ToString(), ": ", why,
                                                    "; choose another with ", option,
                                                    ", or port 0 for any free port"));
}

absl::string_view ExplainBindError(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the port is in use by another program, perhaps another tandemd";
    case EADDRNOTAVAIL:
      return "the host is not an address of this machine";
    case EACCES:
      return "ports below 1024 need special rights";
    default:
      return strerror(error);
  }
}

}  // namespace

absl::Status RpcServer::CheckAddress(const ListenAddress& address, absl::string_view option) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (result != 0)
    return CannotListen(address, option, absl::StrCat("the host is unknown: ", gai_strerror(result)));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr && error != 0; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int on = 1;
    // Like gRPC: a port with old connections in TIME_WAIT is free.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    error = bind(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    close(fd);
  }
  freeaddrinfo(found);
  return error == 0 ? absl::OkStatus() : CannotListen(address, option, ExplainBindError(error));
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const ListenAddress& address, std::shared_ptr<grpc::ServerCredentials> credentials, Parts parts,
    const RpcServerOptions& options) {
  std::unique_ptr<RpcServer> server(new RpcServer(address, std::move(parts), options.unary));
  TANDEM_ASSIGN_OR_RETURN(server->gate_, ConnectionGate::Listen(address, {.most = options.max_connections}));
  // Process-wide; affects servers that are built later.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  SetLimits(options.memory_bytes, &builder);
  RefuseCompressedMessages(&builder);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(LimitOwnServices(OwnServiceLimits()));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  // Notices clients that vanish. Idle watchers may ping at a reasonable rate.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
  builder.RegisterService(server->job_service_.get());
  builder.RegisterService(server->model_service_.get());
  builder.RegisterService(server->dataset_service_.get());
  builder.RegisterService(server->sweep_service_.get());
  builder.RegisterService(server->daemon_service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return absl::InternalError("cannot start gRPC's server");
  server->gate_->Start(std::move(acceptor),
                       [calls = std::make_unique<UnansweredCalls>(UnansweredCalls::Limits()),
                        times = LookTimes(), is_likely = false]() mutable {
                         const absl::Duration now = Clock::Real()->Elapsed();
                         if (!times.MustLook(now, ProcessorTime()) && !is_likely) return Harm();
                         Harm harm = calls->Excess(LookAtConnections(), now);
                         is_likely = harm.is_likely;
                         return harm;
                       });
  server->address_.port = server->gate_->port();
  server->token_watch_ =
      std::make_unique<TokenWatch>(server->parts_.authenticator, &server->calls_,
                                   std::vector<FairPool*>{server->parts_.pool, server->parts_.user_pool});
  server->SetServing(true);
  return server;
}

RpcServer::RpcServer(const ListenAddress& address, Parts parts, const UnaryCounts::Limits& unary)
    : address_(address),
      parts_(std::move(parts)),
      calls_(unary),
      call_parts_{.lifecycle = parts_.lifecycle,
                  .authenticator = parts_.authenticator,
                  .limits = parts_.limits,
                  .hooks = parts_.hooks,
                  .pool = parts_.pool,
                  .calls = &calls_},
      local_data_(parts_.datasets, parts_.remote, parts_.user_pool),
      quotas_(parts_.quota, parts_.disk_use, parts_.is_removing, parts_.uploads),
      requests_(parts_.admission, parts_.jobs, parts_.scheduler, parts_.lifecycle, parts_.registry,
                parts_.uploads, &local_data_, &quotas_),
      job_service_(
          MakeJobService(&call_parts_, parts_, &local_data_, &quotas_, &requests_, &checked_artifacts_)),
      model_service_(MakeModelService(&call_parts_, parts_, &local_data_)),
      dataset_service_(MakeDatasetService(&call_parts_, parts_, &local_data_, &quotas_)),
      sweep_service_(MakeSweepService(&call_parts_, parts_, &quotas_, &requests_)),
      daemon_service_(MakeDaemonService(&call_parts_, parts_)) {}

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
  calls_.streams.AwaitNone(timeout);
}

void RpcServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  gate_->Stop();
  EndServing();
  absl::Status status = parts_.lifecycle->CheckServing();
  if (status.ok()) status = absl::UnavailableError("the daemon is shutting down; try again when it runs");
  calls_.streams.EndAll(status);
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
  token_watch_ = nullptr;
  server_ = nullptr;
}

}  // namespace tandem
