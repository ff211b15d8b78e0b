#ifndef TANDEM_TESTS_BENCH_LATENCIES_H_
#define TANDEM_TESTS_BENCH_LATENCIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "nlohmann/json.hpp"

namespace tandem::bench {

// Collects durations and computes their quantiles. Thread-safe.
class Latencies {
 public:
  void Add(absl::Duration latency);

  int64_t count() const;
  // Returns the quantile `part` (from 0 to 1), in milliseconds. 0 without durations.
  double Milliseconds(double part) const;

  // Returns {"count", "p50_ms", "p99_ms", "max_ms"}.
  nlohmann::ordered_json ToJson() const;
  // Returns "name  count  p50  p99  max", a row under TableHead.
  std::string ToRow(const std::string& name) const;
  static std::string TableHead();

 private:
  mutable Mutex mutex_;
  std::vector<double> milliseconds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LATENCIES_H_
