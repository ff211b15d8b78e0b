#ifndef TANDEM_SERVER_HTTP_PROCESS_METRICS_H_
#define TANDEM_SERVER_HTTP_PROCESS_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

namespace tandem {

// Prometheus's standard metrics of this process, and metrics of its build. Leaves out values that the system
// does not provide. Immutable, so thread-safe.
class ProcessMetrics : public prometheus::Collectable {
 public:
  // `cuda_major` is the major version of the workers' CUDA; 0: none.
  explicit ProcessMetrics(int cuda_major) : cuda_major_(cuda_major) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const int cuda_major_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_PROCESS_METRICS_H_
