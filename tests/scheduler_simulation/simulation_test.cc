#include "tests/scheduler_simulation/simulation.h"

#include <cstdio>
#include <cstdlib>
#include <string>

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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// Whether what takes its time, or a machine of its own, is to be done, too: TANDEM_WHOLE=1.
bool RunsWhole() {
  const char* const whole = std::getenv("TANDEM_WHOLE");
  return whole != nullptr && std::string(whole) == "1";
}

double Hours(absl::Duration duration) { return absl::ToDoubleHours(duration); }

void Print(const char* name, const Score& score) {
  std::printf(
      "%-22s makespan %7.2f h, longest wait %7.2f h, mean wait %6.2f h (of priority above 0: %.2f h), "
      "utilisation while any waits %5.1f %%\n"
      "%-22s passed: %d with a reservation, %d by age, %d neither; later than reserved: %d\n"
      "%-22s furthest from the fair share %.1f %% (all users waited for %.1f h); longest queue %d\n"
      "%-22s %d decisions: median %.1f us, 99th percentile %.1f us, longest %.1f us of processor time; "
      "99th percentile of the %d with the longest queues %.1f us\n"
      "%-22s %d preemptions; %d starts raised by more than the job's own wait\n",
      name, Hours(score.makespan), Hours(score.longest_wait), Hours(score.mean_wait),
      Hours(score.mean_urgent_wait), 100 * score.utilisation_while_waiting, "", score.passed_reserved,
      score.passed_by_age, score.inversions, score.late, "", 100 * score.worst_share, Hours(score.contended),
      score.longest_queue, "", score.decisions, absl::ToDoubleMicroseconds(score.decision_median),
      absl::ToDoubleMicroseconds(score.decision_p99), absl::ToDoubleMicroseconds(score.decision_longest),
      score.long_queue_decisions, absl::ToDoubleMicroseconds(score.long_queue_p99), "", score.preemptions,
      score.raised_too_much);
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
  EXPECT_LT(backfill.mean_wait, fifo.mean_wait);
  EXPECT_LT(backfill.longest_wait, fifo.longest_wait);
}

// The same, with jobs that make room for those of higher priority.
TEST(SimulationTest, WithPreemption) {
  const Score without = Simulate(MakeTrace(kSeed, kJobs, kUsers), kDevices, BackfillPolicy());
  const Score with = Simulate(MakePreemptibleTrace(kSeed, kJobs, kUsers), kDevices, BackfillPolicy());
  Print("without preemption", without);
  Print("with preemption", with);
  EXPECT_GT(with.preemptions, 0);
  EXPECT_EQ(with.started, kJobs + with.preemptions - with.preempted_ends);
  EXPECT_EQ(with.ended, kJobs);
  EXPECT_EQ(with.inversions, 0);
  // Who has run for hours and makes room has not waited for hours.
  EXPECT_EQ(with.raised_too_much, 0);
  EXPECT_LT(with.mean_urgent_wait, without.mean_urgent_wait);
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
  EXPECT_LT(backfill.longest_wait, fifo.longest_wait);
  // A decision with a queue of ten thousand. Other machines, or what else runs, are no fault of the policy.
  EXPECT_GT(backfill.long_queue_decisions, 100);
  if (RunsWhole() && !kIsSanitized) {
    EXPECT_LT(backfill.long_queue_p99, absl::Milliseconds(1));
  }
}

}  // namespace
}  // namespace tandem
