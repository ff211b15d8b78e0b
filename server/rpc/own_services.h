#ifndef TANDEM_SERVER_RPC_OWN_SERVICES_H_
#define TANDEM_SERVER_RPC_OWN_SERVICES_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

namespace tandem {

// The most open calls of gRPC's own services, health checking and reflection. They know no users: a health
// check needs no token, and reflection has a thread per stream.
struct OwnServiceLimits {
  // Calls of a connection.
  int of_connection = 16;
  // Streams of an address (SourceOf).
  int of_address = 64;
  // All streams.
  int of_all = 512;
};

// Returns an interceptor that cancels calls of these services above the limits.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> LimitOwnServices(
    const OwnServiceLimits& limits);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_OWN_SERVICES_H_
