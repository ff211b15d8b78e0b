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

#if defined(TANDEM_ASAN) || defined(TANDEM_TSAN)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// Returns whether to run tests that are slow or need a machine of their own: TANDEM_WHOLE=1.
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

// Counts jobs that arrived after the job with this number and started before it. With `unlimited`, counts
// only jobs without a time limit.
int Overtakes(const std::vector<TraceJob>& trace, const Score& score, int number, bool unlimited) {
  int overtakes = 0;
  for (const TraceJob& job : trace) {
    if (unlimited && job.limit != absl::InfiniteDuration()) continue;
    overtakes += job.number > number && score.starts[job.number] < score.starts[number];
  }
  return overtakes;
}

// Small jobs that come without end: one each `every` from the second second on, until `last`.
struct Stream {
  absl::Duration every;
  absl::Duration last;
  absl::Duration run_time;
};
constexpr int kFirstJobs = 4;
constexpr int kGang = kFirstJobs;
// Returns a trace for a machine of four devices: four jobs of one device that end one after the other, a gang
// that needs all devices, and the stream. All have the same user and priority, and no time limit.
std::vector<TraceJob> MakeGangTrace(const Stream& stream) {
  std::vector<TraceJob> trace;
  const auto add = [&trace](absl::Duration arrival, int devices, absl::Duration run_time) {
    TraceJob& job = trace.emplace_back();
    job.number = static_cast<int>(trace.size()) - 1;
    job.arrival = arrival;
    job.devices = devices;
    job.run_time = run_time;
    job.limit = absl::InfiniteDuration();
    job.estimate = run_time;
  };
  for (int i = 0; i < kFirstJobs; ++i) add(absl::ZeroDuration(), 1, (i + 1) * absl::Seconds(5));
  add(absl::Seconds(1), 4, absl::Seconds(10));
  for (absl::Duration arrival = absl::Seconds(2); arrival < stream.last; arrival += stream.every)
    add(arrival, 1, stream.run_time);
  return trace;
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

// The same trace with preemptible jobs.
TEST(SimulationTest, WithPreemption) {
  const Score without = Simulate(MakeTrace(kSeed, kJobs, kUsers), kDevices, BackfillPolicy());
  const Score with = Simulate(MakePreemptibleTrace(kSeed, kJobs, kUsers), kDevices, BackfillPolicy());
  Print("without preemption", without);
  Print("with preemption", with);
  EXPECT_GT(with.preemptions, 0);
  EXPECT_EQ(with.started, kJobs + with.preemptions - with.preempted_ends);
  EXPECT_EQ(with.ended, kJobs);
  EXPECT_EQ(with.inversions, 0);
  // A job that ran for hours before its preemption has not waited for hours.
  EXPECT_EQ(with.raised_too_much, 0);
  EXPECT_LT(with.mean_urgent_wait, without.mean_urgent_wait);
}

// A queue of ten thousand jobs that arrive at once.
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
  // Times a decision with a queue of ten thousand jobs. Skipped by default, because the time depends on the
  // machine and its other load.
  EXPECT_GT(backfill.long_queue_decisions, 100);
  if (RunsWhole() && !kIsSanitized) {
    EXPECT_LT(backfill.long_queue_p99, absl::Milliseconds(1));
  }
}

// Most jobs have no time limit, and estimates are wrong. A job's reservation never moves to a later time, and
// its wait has a bound: the sum of the run times of the jobs before it.
TEST(SimulationTest, WithoutTimeLimits) {
  const std::vector<TraceJob> trace = MakeUnlimitedTrace(kSeed, kJobs / 5);
  const Score score = Simulate(trace, kDevices, BackfillPolicy());
  Print("without time limits", score);
  EXPECT_EQ(score.ended, kJobs / 5);
  EXPECT_EQ(score.late, 0);
  int limited_overtakes = 0;
  for (const TraceJob& job : trace) {
    EXPECT_EQ(Overtakes(trace, score, job.number, /*unlimited=*/true), 0) << job.number;
    limited_overtakes += Overtakes(trace, score, job.number, /*unlimited=*/false);
    absl::Duration bound;
    for (const TraceJob& before : trace) {
      if (before.number >= job.number) break;
      if (score.starts[before.number] + before.run_time <= job.arrival) continue;
      bound += before.limit == absl::InfiniteDuration() ? before.run_time : before.limit;
    }
    EXPECT_LE(score.starts[job.number] - job.arrival, bound) << job.number;
  }
  // A time limit lets jobs use devices that are kept for others.
  EXPECT_GT(limited_overtakes, 0);
}

// Five small jobs arrive each second, twice as many as the devices can run.
TEST(SimulationTest, EndlessArrivalsDoNotPassAGang) {
  const Stream stream = {absl::Milliseconds(200), absl::Minutes(5), absl::Milliseconds(1700)};
  for (const int gang_priority : {0, 50}) {
    // The scheduler's estimate as a part of the real run time.
    for (const double expected : {0.01, 1.0, 100.0}) {
      SCOPED_TRACE(testing::Message() << "priority " << gang_priority << ", expected " << expected);
      std::vector<TraceJob> trace = MakeGangTrace(stream);
      trace[kGang].priority = gang_priority;
      for (TraceJob& job : trace) job.estimate = job.run_time * expected;
      const Score score = Simulate(trace, /*devices=*/4, BackfillPolicy());
      EXPECT_EQ(Overtakes(trace, score, kGang, /*unlimited=*/false), 0);
      // The end of the last of the first jobs.
      EXPECT_EQ(score.starts[kGang], absl::Seconds(20));
    }
  }
}

// The first jobs' time limits say until when small jobs that have limits may run before the gang.
TEST(SimulationTest, EndlessArrivalsWithLimitsDelayNoReservation) {
  const Stream stream = {absl::Milliseconds(200), absl::Minutes(5), absl::Milliseconds(1700)};
  std::vector<TraceJob> trace = MakeGangTrace(stream);
  for (TraceJob& job : trace) {
    // Every other small job has none.
    if (job.number > kGang && job.number % 2 == 1) continue;
    job.limit = 2 * job.run_time;
    job.estimate = job.run_time / 100;
  }
  const Score score = Simulate(trace, /*devices=*/4, BackfillPolicy());
  EXPECT_EQ(Overtakes(trace, score, kGang, /*unlimited=*/true), 0);
  EXPECT_GT(Overtakes(trace, score, kGang, /*unlimited=*/false), 0);
  EXPECT_EQ(score.late, 0);
  EXPECT_LE(score.starts[kGang], absl::Seconds(40));
}

// A gang of lower priority starts when its wait has raised it above the arriving jobs. This takes an ageing
// interval for each level, and then the longest run time of an arriving job.
TEST(SimulationTest, EndlessArrivalsOfHigherPriorityEndAWait) {
  constexpr int kLevels = 3;
  const Stream stream = {absl::Seconds(2), absl::Hours(5), absl::Seconds(10)};
  std::vector<TraceJob> trace = MakeGangTrace(stream);
  trace[kGang].priority = -kLevels;
  const Score score = Simulate(trace, /*devices=*/4, BackfillPolicy());
  const absl::Duration wait = score.starts[kGang] - trace[kGang].arrival;
  EXPECT_GE(wait, kLevels * kAgeingInterval);
  EXPECT_LE(wait, (kLevels + 1) * kAgeingInterval + stream.run_time);
}

// Two other users have used less device time, and so precede the gang at the same priority. But for an hour
// no job could start. Then one job of each user precedes the gang, and the gang precedes all others.
TEST(SimulationTest, EndlessArrivalsOfOtherUsersPassAGangOnceEach) {
  const Stream stream = {absl::Seconds(2), absl::Hours(2), absl::Seconds(10)};
  std::vector<TraceJob> trace = MakeGangTrace(stream);
  for (TraceJob& job : trace) {
    if (job.number < kFirstJobs) {
      // The gang's user has held all devices for an hour.
      job.run_time += absl::Hours(1);
    } else if (job.number > kGang) {
      job.user = 1 + job.number % 2;
    }
  }
  const Score score = Simulate(trace, /*devices=*/4, BackfillPolicy());
  EXPECT_LE(Overtakes(trace, score, kGang, /*unlimited=*/false), 2);
  EXPECT_LE(score.starts[kGang], trace[kFirstJobs - 1].run_time + stream.run_time);
}

}  // namespace
}  // namespace tandem
