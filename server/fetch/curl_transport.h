#ifndef TANDEM_SERVER_FETCH_CURL_TRANSPORT_H_
#define TANDEM_SERVER_FETCH_CURL_TRANSPORT_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/fetch/proxies.h"
#include "server/fetch/transport.h"

namespace tandem {

// A transport over libcurl. Keeps connections for later requests. Thread-safe. Each request blocks its
// thread.
class CurlTransport : public Transport {
 public:
  struct Options {
    absl::Duration connect_timeout = absl::Seconds(15);
    // The longest time that a transfer may stall.
    absl::Duration stall_timeout = absl::Seconds(30);
    // A PEM file of the authorities that may sign servers' certificates. Empty: the system's authorities.
    std::string ca_file;
    // Requests use these proxies and ignore no_proxy. A proxy resolves servers' names, so addresses behind a
    // proxy are not checked. Requests with `any_address` use libcurl's own environment variables instead.
    Proxies proxies;
  };

  explicit CurlTransport(Options options);
  ~CurlTransport() override;

  absl::StatusOr<HttpResponse> Get(const HttpRequest& request, HttpSink& sink) override;
  void Stop() override { stopped_ = true; }

 private:
  class Exchange;
  struct Handle;

  std::unique_ptr<Handle> TakeHandle(bool is_judged);
  void GiveBack(std::unique_ptr<Handle> handle);

  const Options options_;
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  // Connections belong to handles. Addresses are checked when a connection is opened, so a checked request
  // uses no unchecked connection.
  std::vector<std::unique_ptr<Handle>> idle_judged_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Handle>> idle_others_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_CURL_TRANSPORT_H_
