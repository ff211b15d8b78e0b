#ifndef TANDEM_SERVER_HTTP_SERVICE_METRICS_H_
#define TANDEM_SERVER_HTTP_SERVICE_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/http/metrics.h"

namespace tandem {

// Prometheus's metrics of the daemon's own work: calls and commits. Thread-safe.
class ServiceMetrics {
 public:
  // `metrics` must outlive this object.
  explicit ServiceMetrics(Metrics* metrics);

  // See Store::SetCommitObserver.
  void OnCommit(absl::Duration duration, int writes, const absl::Status& status);

  // A call of this method ("CreateJob") started.
  void OnCallStarted(absl::string_view method);
  // The call ended. The durations of streams mean nothing and are not counted.
  void OnCallEnded(absl::string_view method, absl::StatusCode code, absl::Duration duration, bool is_stream);

 private:
  prometheus::Histogram& commit_seconds_;
  prometheus::Counter& writes_;
  prometheus::Counter& commit_failures_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Histogram>& call_seconds_;
  prometheus::Family<prometheus::Gauge>& calls_in_flight_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_SERVICE_METRICS_H_
