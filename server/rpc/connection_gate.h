#ifndef TANDEM_SERVER_RPC_CONNECTION_GATE_H_
#define TANDEM_SERVER_RPC_CONNECTION_GATE_H_

#include <grpcpp/server_builder.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/listen_policy.h"
#include "server/rpc/connection_calls.h"

namespace tandem {

// Listens in place of gRPC, and gives it at most `most` connections at a time and half as many from one
// address. Without the gate, gRPC would accept connections until the process has no free file.
// Thread-compatible.
//
// A connection above a limit is closed at once; its client sees UNAVAILABLE and retries. An address's 101st
// new connection within a second is also closed. A harmful connection is shut, and its address is refused for
// 10 seconds. Loopback, which all users of the machine share, is exempt from the limit on new connections and
// from the refusal.
class ConnectionGate {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  struct Limits {
    // The most connections; 0: no limit.
    int most = 0;
    // The limit is lower if the process may not open this many times as many files. The parts of all gates of
    // a process, 1 / files_per_connection, must leave files for everything else.
    int files_per_connection = 2;
    // The options of the address and of `most`, for messages.
    std::string address_option = "--listen";
    std::string most_option = "--max-connections";
  };

  // FAILED_PRECONDITION: the address is in use, is not this machine's, may not be used, or is no known name.
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Listen(const ListenAddress& address,
                                                                const Limits& limits);
  // Calls Stop.
  ~ConnectionGate();
  ConnectionGate(const ConnectionGate&) = delete;
  ConnectionGate& operator=(const ConnectionGate&) = delete;

  // Returns the real port.
  int port() const { return port_; }
  int most() const { return most_; }

  // Finds harmful connections. Called on the gate's thread, ten times a second, or fifty times if harm is
  // likely. Called less often if it would use more than a twentieth of a core.
  using Look = absl::AnyInvocable<Harm()>;

  // Starts accepting connections. Call after the server's start. `look` may be null.
  void Start(std::unique_ptr<Acceptor> acceptor, Look look = nullptr);
  // Stops accepting and listening. Call before the server's end. Idempotent.
  void Stop();

 private:
  // A connection that gRPC owns. gRPC closes it, and then its descriptor may belong to another file. So a
  // socket is identified by its cookie.
  struct Connection {
    int fd = -1;
    uint64_t cookie = 0;
    // SourceOf(peer.ip).
    std::string address;
    PeerAddress peer;
    bool is_shut = false;
  };

  ConnectionGate(int most, std::string most_option) : most_(most), most_option_(std::move(most_option)) {}

  void Run();
  void Accept(int listener);
  // Shuts the connections that `look_` finds, and refuses their addresses for a while.
  void LookForHarm();
  void Shut(const PeerAddress& peer);
  // Forgets closed connections.
  void Forget();

  const int most_;
  const std::string most_option_;
  int port_ = 0;
  // Listening sockets, and last an eventfd that becomes readable for Stop.
  std::vector<int> files_;
  std::unique_ptr<Acceptor> acceptor_;
  Look look_;
  std::thread thread_;

  // Only the thread uses the following members.
  std::vector<Connection> connections_;
  // Keyed by address.
  absl::flat_hash_map<std::string, int> counts_;
  absl::Duration told_ = -absl::InfiniteDuration();
  absl::Duration told_of_harm_ = -absl::InfiniteDuration();
  // The number of new connections by address in the current second.
  absl::flat_hash_map<std::string, int> new_;
  absl::Duration new_until_;
  // The end of an address's refusal.
  absl::flat_hash_map<std::string, absl::Duration> refused_;
  absl::Duration next_look_;
  absl::Duration next_forget_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CONNECTION_GATE_H_
