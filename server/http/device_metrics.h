#ifndef TANDEM_SERVER_HTTP_DEVICE_METRICS_H_
#define TANDEM_SERVER_HTTP_DEVICE_METRICS_H_

#include <prometheus/collectable.h>

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// Prometheus's metrics of devices. Thread-safe.
//
// Only one thread at a time asks the drivers, at most once per second. While a driver does not answer, other
// threads get the previous values. So a hanging driver blocks only one of the server's threads.
class DeviceMetrics : public prometheus::Collectable {
 public:
  // `devices` returns all devices with their drivers' status; may block.
  explicit DeviceMetrics(std::function<std::vector<v1::Device>()> devices,
                         const Clock* clock = Clock::Real());

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::vector<v1::Device> Devices() const;

  const std::function<std::vector<v1::Device>()> devices_;
  const Clock* const clock_;

  mutable Mutex mutex_;
  mutable bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  mutable std::vector<v1::Device> known_ ABSL_GUARDED_BY(mutex_);
  // The age of known_, by Clock::Elapsed().
  mutable absl::Duration known_since_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_DEVICE_METRICS_H_
