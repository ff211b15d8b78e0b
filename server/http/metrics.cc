#include "server/http/metrics.h"

#include <prometheus/text_serializer.h>

#include <cmath>
#include <iterator>
#include <utility>

namespace tandem {

void Metrics::Add(const prometheus::Collectable* collectable) {
  MutexLock lock(&mutex_);
  collectables_.push_back(collectable);
}

void Metrics::AddGauge(const std::string& name, const std::string& help, std::function<double()> value) {
  MutexLock lock(&mutex_);
  gauges_.push_back({name, help, std::move(value)});
}

HttpPage Metrics::Page() const {
  std::vector<const prometheus::Collectable*> collectables;
  std::vector<Gauge> gauges;
  {
    MutexLock lock(&mutex_);
    collectables = collectables_;
    gauges = gauges_;
  }
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (const Gauge& gauge : gauges) {
    const double value = gauge.value();
    GaugeFamily family(gauge.name, gauge.help);
    if (!std::isnan(value)) family.Add({}, value);
    std::move(family).MoveTo(&families);
  }
  for (const prometheus::Collectable* collectable : collectables) {
    std::vector<prometheus::MetricFamily> more = collectable->Collect();
    families.insert(families.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  }
  HttpPage response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = prometheus::TextSerializer().Serialize(families);
  return response;
}

GaugeFamily::GaugeFamily(std::string name, std::string help, prometheus::MetricType type) {
  family_.name = std::move(name);
  family_.help = std::move(help);
  family_.type = type;
}

void GaugeFamily::Add(const std::map<std::string, std::string>& labels, double value) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  for (const auto& [name, text] : labels) {
    prometheus::ClientMetric::Label& label = metric.label.emplace_back();
    label.name = name;
    label.value = text;
  }
  metric.gauge.value = value;
  metric.counter.value = value;
}

void GaugeFamily::MoveTo(std::vector<prometheus::MetricFamily>* families) && {
  if (!family_.metric.empty()) families->push_back(std::move(family_));
}

std::vector<double> Buckets(double least, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = least; static_cast<int>(bounds.size()) < count; bound *= factor)
    bounds.push_back(bound);
  return bounds;
}

}  // namespace tandem
