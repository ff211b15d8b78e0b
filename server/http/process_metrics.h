#ifndef TANDEM_SERVER_HTTP_PROCESS_METRICS_H_
#define TANDEM_SERVER_HTTP_PROCESS_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

namespace tandem {

// What Prometheus is told of this process by the names that all of its client libraries use, and of its
// build. What the system does not say is left out. Immutable, so thread-safe.
class ProcessMetrics : public prometheus::Collectable {
 public:
  // `cuda_major`: of the CUDA that workers are built with; 0: none.
  explicit ProcessMetrics(int cuda_major) : cuda_major_(cuda_major) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const int cuda_major_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_PROCESS_METRICS_H_
