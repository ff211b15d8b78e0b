#ifndef TANDEM_SERVER_RPC_OWN_SERVICES_H_
#define TANDEM_SERVER_RPC_OWN_SERVICES_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

namespace tandem {

// How many calls of gRPC's own services, health checking and reflection, may be open at once. They know no
// users: one check of the health needs no token, and reflection has a thread for each stream.
struct OwnServiceLimits {
  // Of a connection.
  int of_connection = 16;
  // Streams of an address (SourceOf).
  int of_address = 64;
  // Streams of all.
  int of_all = 512;
};

// For a server that cancels such calls above the limits.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> LimitOwnServices(
    const OwnServiceLimits& limits);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_OWN_SERVICES_H_
