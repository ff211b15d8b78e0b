#include "tests/scheduler_simulation/trace.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns a number from 0 to n - 1.
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

// In thousandths: exp(sigma * (k - 16) / 8) for k = 0..32 with sigma = 1.1, that is from -2 to 2 deviations.
constexpr std::array<int64_t, 33> kLogNormal = {
    111,  127,  146,  167,  192,  220,  253,  290,  333,  382,  438,  503,  577,  662,  760,  872, 1000,
    1147, 1317, 1511, 1733, 1989, 2282, 2618, 3004, 3447, 3955, 4538, 5207, 5974, 6855, 7865, 9025};
// Ten fair coins tell how many deviations, roughly.
int64_t DrawLogNormal(Random* random, int64_t median) {
  int k = 0;
  const uint64_t bits = random->Next();
  for (int i = 0; i < 32; ++i) k += (bits >> i) & 1;
  // 32 coins have a deviation of 2.8; spread it over the table.
  const int spread = std::clamp(16 + (k - 16) * 3, 0, 32);
  return median * kLogNormal[spread] / 1000;
}

constexpr std::array<int, 20> kSizes = {1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8, 16, 16, 32};

}  // namespace

std::vector<TraceJob> MakeTrace(uint64_t seed, int jobs, int users) {
  Random random(seed);
  std::vector<TraceJob> trace(jobs);
  int64_t arrival_ms = 0;
  for (int i = 0; i < jobs; ++i) {
    TraceJob& job = trace[i];
    job.number = i;
    // On average 95 s: about as much work as 64 devices do.
    arrival_ms += random.Below(190'000);
    job.arrival = absl::Milliseconds(arrival_ms);
    job.user = static_cast<int>(random.Below(users));
    job.devices = random.Below(500) == 0 ? 64 : kSizes[random.Below(kSizes.size())];
    const int64_t priority = random.Below(20);
    job.priority = priority == 0 ? 10 : priority < 3 ? -10 : 0;
    const int64_t seconds = std::max<int64_t>(10, DrawLogNormal(&random, 600));
    job.run_time = absl::Seconds(seconds);
    job.limit = absl::Seconds(seconds + seconds * random.Below(200) / 100 + 1);
    job.estimate = job.limit;
  }
  return trace;
}

std::vector<TraceJob> MakePreemptibleTrace(uint64_t seed, int jobs, int users) {
  std::vector<TraceJob> trace = MakeTrace(seed, jobs, users);
  for (TraceJob& job : trace) job.preemptible = job.priority <= 0 && job.number % 2 == 0;
  return trace;
}

std::vector<TraceJob> MakeUnlimitedTrace(uint64_t seed, int jobs) {
  std::vector<TraceJob> trace = MakeTrace(seed, jobs, /*users=*/1);
  Random random(seed);
  for (TraceJob& job : trace) {
    job.priority = 0;
    if (job.number % 3 != 0) job.limit = absl::InfiniteDuration();
    const int64_t exponent = random.Below(9) - 4;
    job.estimate = exponent < 0 ? job.run_time / (1 << -exponent) : job.run_time * (1 << exponent);
    job.estimate = std::min(job.estimate, job.limit);
  }
  return trace;
}

uint64_t Checksum(const std::vector<TraceJob>& trace) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](int64_t value) {
    for (int i = 0; i < 8; ++i) {
      hash ^= static_cast<uint64_t>(value >> (8 * i)) & 0xff;
      hash *= 0x100000001b3;
    }
  };
  for (const TraceJob& job : trace) {
    add(job.number);
    add(absl::ToInt64Milliseconds(job.arrival));
    add(job.user);
    add(job.devices);
    add(job.priority);
    add(absl::ToInt64Milliseconds(job.run_time));
    add(absl::ToInt64Milliseconds(job.limit));
  }
  return hash;
}

}  // namespace tandem
