#include "server/http/service_metrics.h"

#include <string>

namespace tandem {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

ServiceMetrics::ServiceMetrics(Metrics* metrics)
    : commit_seconds_(BuildHistogram()
                          .Name("tandem_store_commit_seconds")
                          .Help("Transactions of the store's writer, sync included.")
                          .Register(metrics->registry())
                          .Add({}, Buckets(0.0001, 3, 11))),
      writes_(BuildCounter()
                  .Name("tandem_store_writes_total")
                  .Help("Changes that were asked of the store; one transaction may hold many.")
                  .Register(metrics->registry())
                  .Add({})),
      commit_failures_(BuildCounter()
                           .Name("tandem_store_commit_failures_total")
                           .Help("Transactions of the store that failed, as on a full disk.")
                           .Register(metrics->registry())
                           .Add({})),
      calls_(BuildCounter()
                 .Name("tandem_rpc_calls_total")
                 .Help("Calls that ended, by method and status code.")
                 .Register(metrics->registry())),
      call_seconds_(BuildHistogram()
                        .Name("tandem_rpc_call_seconds")
                        .Help("From a call's beginning to its answer, by method; streams not counted.")
                        .Register(metrics->registry())),
      calls_in_flight_(BuildGauge()
                           .Name("tandem_rpc_calls_in_flight")
                           .Help("Calls that have not ended, by method; those of WatchJob and WatchJobs are "
                                 "watchers.")
                           .Register(metrics->registry())) {}

void ServiceMetrics::OnCommit(absl::Duration duration, int writes, const absl::Status& status) {
  commit_seconds_.Observe(absl::ToDoubleSeconds(duration));
  writes_.Increment(writes);
  if (!status.ok()) commit_failures_.Increment();
}

void ServiceMetrics::OnCallStarted(absl::string_view method) {
  calls_in_flight_.Add({{"method", std::string(method)}}).Increment();
}

void ServiceMetrics::OnCallEnded(absl::string_view method, absl::StatusCode code, absl::Duration duration,
                                 bool is_stream) {
  const std::string name(method);
  calls_in_flight_.Add({{"method", name}}).Decrement();
  calls_.Add({{"method", name}, {"code", absl::StatusCodeToString(code)}}).Increment();
  if (!is_stream) {
    call_seconds_.Add({{"method", name}}, Buckets(0.0005, 4, 10)).Observe(absl::ToDoubleSeconds(duration));
  }
}

}  // namespace tandem
