#include "server/http/service_metrics.h"

#include <string>

namespace tandem {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

ServiceMetrics::ServiceMetrics(Metrics* metrics)
    : commit_seconds_(BuildHistogram()
                          .Name("tandem_store_commit_seconds")
                          .Help("Transactions of the store's writer, including sync.")
                          .Register(metrics->registry())
                          .Add({}, Buckets(0.0001, 3, 11))),
      writes_(BuildCounter()
                  .Name("tandem_store_writes_total")
                  .Help("Requested changes of the store; one transaction may hold many.")
                  .Register(metrics->registry())
                  .Add({})),
      commit_failures_(BuildCounter()
                           .Name("tandem_store_commit_failures_total")
                           .Help("Failed transactions of the store, for example on a full disk.")
                           .Register(metrics->registry())
                           .Add({})),
      calls_(BuildCounter()
                 .Name("tandem_rpc_calls_total")
                 .Help("Ended calls, by method and status code.")
                 .Register(metrics->registry())),
      call_seconds_(BuildHistogram()
                        .Name("tandem_rpc_call_seconds")
                        .Help("Time from a call's start to its answer, by method; without streams.")
                        .Register(metrics->registry())),
      calls_in_flight_(BuildGauge()
                           .Name("tandem_rpc_calls_in_flight")
                           .Help("Open calls, by method; those of WatchJob and WatchJobs are watchers.")
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
