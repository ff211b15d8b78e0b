#include "tests/bench/latencies.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace tandem::bench {

void Latencies::Add(absl::Duration latency) {
  MutexLock lock(&mutex_);
  milliseconds_.push_back(absl::ToDoubleMilliseconds(latency));
}

int64_t Latencies::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(milliseconds_.size());
}

double Latencies::Milliseconds(double part) const {
  std::vector<double> sorted;
  {
    MutexLock lock(&mutex_);
    sorted = milliseconds_;
  }
  if (sorted.empty()) return 0;
  const auto rank = static_cast<int64_t>(std::ceil(part * static_cast<double>(sorted.size()))) - 1;
  const auto nth = sorted.begin() + std::clamp<int64_t>(rank, 0, static_cast<int64_t>(sorted.size()) - 1);
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

nlohmann::ordered_json Latencies::ToJson() const {
  const auto rounded = [](double milliseconds) { return std::round(milliseconds * 1000) / 1000; };
  return {{"count", count()},
          {"p50_ms", rounded(Milliseconds(0.5))},
          {"p99_ms", rounded(Milliseconds(0.99))},
          {"max_ms", rounded(Milliseconds(1))}};
}

std::string Latencies::ToRow(const std::string& name) const {
  return absl::StrFormat("%-40s %8d %10.2f %10.2f %10.2f\n", name, count(), Milliseconds(0.5),
                         Milliseconds(0.99), Milliseconds(1));
}

std::string Latencies::TableHead() {
  return absl::StrFormat("%-40s %8s %10s %10s %10s\n", "milliseconds", "count", "p50", "p99", "max");
}

}  // namespace tandem::bench
