#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_TCP_RENDEZVOUS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_TCP_RENDEZVOUS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

// A rendezvous over TCP, for processes that share no folder: one of them serves what all of them publish, and
// has to stay until all have found what they wait for. Whoever reaches the port can publish: it is for
// networks whose hosts trust each other, as the groups that meet there are.
class TcpRendezvous final : public Rendezvous {
 public:
  // Serves at `address`, HOST:PORT, on all of this host's addresses, and waits until `others` processes have
  // reached it. UNAVAILABLE where the port is taken; DEADLINE_EXCEEDED where they do not come within
  // `timeout`; INVALID_ARGUMENT for an address that is none.
  static absl::StatusOr<std::unique_ptr<TcpRendezvous>> Serve(const std::string& address, int others,
                                                              absl::Duration timeout);
  // Reaches the process that serves at `address`, which may come later. UNAVAILABLE where it is not reached
  // within `timeout`; DEADLINE_EXCEEDED where this host is to be reached by others, and they have not come.
  static absl::StatusOr<std::unique_ptr<TcpRendezvous>> Reach(const std::string& address,
                                                              absl::Duration timeout);
  ~TcpRendezvous() override;

  // This host's address by which all others reach it: of the loopback interface only where all are on this
  // host. (Where a host's own name stands for its loopback interface, as 127.0.1.1 does on Debian, processes
  // there reach each other by that and others by another address.)
  const std::string& host() const { return host_; }

  absl::Status Publish(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Await(const std::string& key, absl::Duration timeout) override;

 private:
  class Server;

  explicit TcpRendezvous(std::string address);

  const std::string address_;
  std::string host_;
  std::unique_ptr<Server> server_;  // Null where another process serves.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_TCP_RENDEZVOUS_H_
