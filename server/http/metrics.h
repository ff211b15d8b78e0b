#ifndef TANDEM_SERVER_HTTP_METRICS_H_
#define TANDEM_SERVER_HTTP_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/registry.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "server/http/http_server.h"

namespace tandem {

// All of Prometheus's metrics (METRICS.md). Thread-safe.
class Metrics {
 public:
  // The registry of metrics that their owners update.
  prometheus::Registry& registry() { return registry_; }

  // Adds metrics that are collected for each page. `collectable` must outlive this object.
  void Add(const prometheus::Collectable* collectable);
  // Adds a gauge. `value` is called for each page, on any thread, and must not block for long. If it returns
  // NaN, the page leaves out the gauge.
  void AddGauge(const std::string& name, const std::string& help, std::function<double()> value);

  // Returns the page in Prometheus's text format.
  HttpPage Page() const;

 private:
  struct Gauge {
    std::string name;
    std::string help;
    std::function<double()> value;
  };

  prometheus::Registry registry_;
  mutable Mutex mutex_;
  std::vector<const prometheus::Collectable*> collectables_ ABSL_GUARDED_BY(mutex_);
  std::vector<Gauge> gauges_ ABSL_GUARDED_BY(mutex_);
};

// Builds a family of collected values, for a Collectable.
class GaugeFamily {
 public:
  GaugeFamily(std::string name, std::string help,
              prometheus::MetricType type = prometheus::MetricType::Gauge);
  void Add(const std::map<std::string, std::string>& labels, double value);
  // Appends the family unless empty.
  void MoveTo(std::vector<prometheus::MetricFamily>* families) &&;

 private:
  prometheus::MetricFamily family_;
};

// Returns the upper bounds of `count` buckets. The first is `least`, and each next bound is `factor` times
// larger.
std::vector<double> Buckets(double least, double factor, int count);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_METRICS_H_
