#ifndef TANDEM_SERVER_RPC_CONNECTION_GATE_H_
#define TANDEM_SERVER_RPC_CONNECTION_GATE_H_

#include <grpcpp/server_builder.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/listen_policy.h"
#include "server/rpc/connection_calls.h"

namespace tandem {

// Listens in gRPC's place and hands it the connections that come, but no more than so many at a time, and
// half as many from one address: gRPC itself takes whatever comes, until the process can open no file any
// more. One too many is closed at once; its client sees UNAVAILABLE and tries again later. So is the 101st
// new connection of an address within a second. A connection that is found to do harm is shut, and its
// address is refused for 10 seconds. Loopback, where all users of the machine are, is spared both.
// Thread-compatible.
class ConnectionGate {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // FAILED_PRECONDITION: the address is in use, is not this machine's, may not be used, or is no known name.
  // `most`: of connections, 0 for any number; fewer where the process may not have twice as many files open.
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Listen(const ListenAddress& address, int most);
  // Stop().
  ~ConnectionGate();
  ConnectionGate(const ConnectionGate&) = delete;
  ConnectionGate& operator=(const ConnectionGate&) = delete;

  // The port that was found.
  int port() const { return port_; }
  int most() const { return most_; }

  // Finds the connections that do harm. Called on a thread of the gate, ten times a second, fifty times where
  // harm is likely, and less often where it would take more than a twentieth of that thread's time.
  using Look = absl::AnyInvocable<Harm()>;

  // Lets connections in, once the server has started. `look` may be null.
  void Start(std::unique_ptr<Acceptor> acceptor, Look look = nullptr);
  // Lets no more in, and listens no more; before the server's end. Idempotent.
  void Stop();

 private:
  // A connection that was handed over. gRPC closes it, and its number may be another file's then: a socket is
  // known by its cookie.
  struct Connection {
    int fd = -1;
    uint64_t cookie = 0;
    // SourceOf(peer.ip).
    std::string address;
    PeerAddress peer;
    bool is_shut = false;
  };

  explicit ConnectionGate(int most) : most_(most) {}

  void Run();
  void Accept(int listener);
  // Shuts the connections that `look_` finds, and refuses their addresses for a while.
  void LookForHarm();
  void Shut(const PeerAddress& peer);
  // Forgets connections that are closed.
  void Forget();

  const int most_;
  int port_ = 0;
  // Sockets that listen, and last an eventfd that is readable once it is to stop.
  std::vector<int> files_;
  std::unique_ptr<Acceptor> acceptor_;
  Look look_;
  std::thread thread_;

  // Of the thread alone.
  std::vector<Connection> connections_;
  // By address.
  absl::flat_hash_map<std::string, int> counts_;
  absl::Duration told_ = -absl::InfiniteDuration();
  absl::Duration told_of_harm_ = -absl::InfiniteDuration();
  // New connections by address, until the second ends.
  absl::flat_hash_map<std::string, int> new_;
  absl::Duration new_until_;
  // Until when an address is refused.
  absl::flat_hash_map<std::string, absl::Duration> refused_;
  absl::Duration next_look_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CONNECTION_GATE_H_
