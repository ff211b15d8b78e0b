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

// What Prometheus is told of devices. Thread-safe.
//
// Drivers are asked by one thread at a time, and not again within a second; while one does not answer, others
// who ask get what was known before, so that a driver that hangs takes one of the server's threads, not all.
class DeviceMetrics : public prometheus::Collectable {
 public:
  // `devices` gives all devices, what their drivers say included; it may take a while.
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
  // Clock::Elapsed() when that was found out.
  mutable absl::Duration known_since_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_DEVICE_METRICS_H_
