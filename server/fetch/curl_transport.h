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

// libcurl. Connections are kept for later requests. Thread-safe; each request blocks its thread.
class CurlTransport : public Transport {
 public:
  struct Options {
    absl::Duration connect_timeout = absl::Seconds(15);
    // The longest that a transfer may stand still.
    absl::Duration stall_timeout = absl::Seconds(30);
    // PEM certificates of the authorities that may vouch for servers. Empty: those of the system.
    std::string ca_file;
    // What goes through one goes there whatever no_proxy says, and it is the proxy that finds servers'
    // addresses, so that they are not judged here. Of requests that may go to any address libcurl reads the
    // environment itself.
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
  // Connections belong to handles. A judged request takes none that another one opened, as addresses are
  // judged when connections are opened.
  std::vector<std::unique_ptr<Handle>> idle_judged_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Handle>> idle_others_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_CURL_TRANSPORT_H_
