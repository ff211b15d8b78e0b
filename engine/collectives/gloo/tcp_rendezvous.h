#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_TCP_RENDEZVOUS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_TCP_RENDEZVOUS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

// A rendezvous over TCP, for processes without a shared folder. One of the processes serves all values, and
// must stay until all others have their values. Every process that reaches the port can publish, so use it
// only in networks whose hosts trust each other.
class TcpRendezvous final : public Rendezvous {
 public:
  // Serves at `address`, HOST:PORT, on all addresses of this host. Returns when `others` processes have
  // joined. UNAVAILABLE if the port is in use, DEADLINE_EXCEEDED if they do not join within `timeout`,
  // INVALID_ARGUMENT for a wrong address.
  static absl::StatusOr<std::unique_ptr<TcpRendezvous>> Serve(const std::string& address, int others,
                                                              absl::Duration timeout);
  // Joins the process that serves at `address`, which may start later. UNAVAILABLE if it cannot be reached
  // within `timeout`. DEADLINE_EXCEEDED if other hosts need this process's address and have not joined.
  static absl::StatusOr<std::unique_ptr<TcpRendezvous>> Reach(const std::string& address,
                                                              absl::Duration timeout);
  ~TcpRendezvous() override;

  // Returns this host's address for all others. It is a loopback address only if all are on this host. (On
  // Debian a host's own name means 127.0.1.1. Processes on this host reach each other by it, and other hosts
  // by another address.)
  const std::string& host() const { return host_; }

  absl::Status Publish(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Await(const std::string& key, absl::Duration timeout) override;

 private:
  class Server;

  explicit TcpRendezvous(std::string address);

  const std::string address_;
  std::string host_;
  std::unique_ptr<Server> server_;  // Null if another process serves.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_TCP_RENDEZVOUS_H_
