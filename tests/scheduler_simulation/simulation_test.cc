#include "tests/scheduler_simulation/simulation.h"

#include <cstdio>

#include "gtest/gtest.h"
#include "server/scheduler/backfill_policy.h"
#include "tests/scheduler_simulation/fifo_policy.h"
#include "tests/scheduler_simulation/trace.h"

namespace tandem {
namespace {

constexpr int kDevices = 64;
constexpr int kJobs = 10'000;
constexpr int kUsers = 8;
constexpr uint64_t kSeed = 1;

double Hours(absl::Duration duration) { return absl::ToDoubleHours(duration); }

void Print(const char* name, const Score& score) {
  std::printf(
      "%-22s makespan %7.2f h, longest wait %7.2f h, mean wait %6.2f h, utilisation while any waits %5.1f "
      "%%\n"
      "%-22s passed: %d with a reservation, %d by age, %d neither; later than reserved: %d\n"
      "%-22s furthest from the fair share %.1f %% (all users waited for %.1f h); longest queue %d\n"
      "%-22s %d decisions: median %.1f us, 99th percentile %.1f us, longest %.1f us of processor time\n",
      name, Hours(score.makespan), Hours(score.longest_wait), Hours(score.mean_wait),
      100 * score.utilisation_while_waiting, "", score.passed_reserved, score.passed_by_age, score.inversions,
      score.late, "", 100 * score.worst_share, Hours(score.contended), score.longest_queue, "",
      score.decisions, absl::ToDoubleMicroseconds(score.decision_median),
      absl::ToDoubleMicroseconds(score.decision_p99), absl::ToDoubleMicroseconds(score.decision_longest));
}

TEST(SimulationTest, TheTraceIsTheSameEverywhere) {
  EXPECT_EQ(Checksum(MakeTrace(kSeed, kJobs, kUsers)), 3973069341794293537u);
}

// Eleven days of jobs, as they come.
TEST(SimulationTest, AsTheyCome) {
  const std::vector<TraceJob> trace = MakeTrace(kSeed, kJobs, kUsers);
  const Score backfill = Simulate(trace, kDevices, BackfillPolicy());
  const Score fifo = Simulate(trace, kDevices, FifoPolicy());
  std::printf("%-22s makespan %7.2f h\n", "ideal, without gangs", Hours(IdealMakespan(trace, kDevices)));
  Print("backfill", backfill);
  Print("first come, first", fifo);
  EXPECT_EQ(backfill.started, kJobs);
  EXPECT_EQ(backfill.ended, kJobs);
  EXPECT_EQ(backfill.inversions, 0);
  EXPECT_GT(backfill.utilisation_while_waiting, fifo.utilisation_while_waiting);
  EXPECT_LT(backfill.makespan, fifo.makespan);
}

// All at once: a queue of ten thousand.
TEST(SimulationTest, AllAtOnce) {
  std::vector<TraceJob> trace = MakeTrace(kSeed, kJobs, kUsers);
  for (TraceJob& job : trace) job.arrival = absl::ZeroDuration();
  const Score backfill = Simulate(trace, kDevices, BackfillPolicy());
  const Score fifo = Simulate(trace, kDevices, FifoPolicy());
  std::printf("%-22s makespan %7.2f h\n", "ideal, without gangs", Hours(IdealMakespan(trace, kDevices)));
  Print("backfill", backfill);
  Print("first come, first", fifo);
  EXPECT_EQ(backfill.started, kJobs);
  EXPECT_EQ(backfill.ended, kJobs);
  EXPECT_EQ(backfill.longest_queue, kJobs);
  EXPECT_EQ(backfill.inversions, 0);
  EXPECT_GT(backfill.utilisation_while_waiting, fifo.utilisation_while_waiting);
  EXPECT_LT(backfill.worst_share, 0.1);
}

}  // namespace
}  // namespace tandem
