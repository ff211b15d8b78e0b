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

// All that Prometheus is told (METRICS.md). Thread-safe.
class Metrics {
 public:
  // Where counters, gauges and histograms are made that are kept up to date by themselves.
  prometheus::Registry& registry() { return registry_; }

  // Adds what is found out when somebody asks. `collectable` outlives this.
  void Add(const prometheus::Collectable* collectable);
  // Adds a gauge whose value is asked for, on any thread; it must not block for long. Not a number: left out.
  void AddGauge(const std::string& name, const std::string& help, std::function<double()> value);

  // The page, in Prometheus' text format.
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

// A family with values that were just found out, for a Collectable to give.
class GaugeFamily {
 public:
  GaugeFamily(std::string name, std::string help,
              prometheus::MetricType type = prometheus::MetricType::Gauge);
  void Add(const std::map<std::string, std::string>& labels, double value);
  // Appends the family, unless it has no value.
  void MoveTo(std::vector<prometheus::MetricFamily>* families) &&;

 private:
  prometheus::MetricFamily family_;
};

// Upper bounds of buckets from `least` up, each `factor` times the one before it.
std::vector<double> Buckets(double least, double factor, int count);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_METRICS_H_
