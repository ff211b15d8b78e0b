#include "engine/training/signal_line.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/backend/forwarding_communicator.h"
#include "engine/base/clock.h"
#include "engine/collectives/local/local_group.h"
#include "engine/training/averaging_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A meeting of the ranks.
struct Met {
  int64_t step = 0;
  bool paused = false;
  bool operator==(const Met& other) const { return step == other.step && paused == other.paused; }
};

// Runs ranks that take steps, up to launch_steps at a time, until they meet with the signal to pause or until
// `steps` steps are taken.
class SignalLineTest : public testing::Test {
 protected:
  // Returns each rank's meetings. `work` runs before each launch of each rank.
  std::vector<std::vector<Met>> Run(int ranks, const std::function<void(int rank, int64_t step)>& work) {
    std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(ranks, absl::Minutes(1));
    v1::Replicas replicas;
    if (averaging_every > 0) replicas.mutable_parameter_averaging()->set_every_iterations(averaging_every);
    const AveragingPolicy averaging(replicas, {.steps_per_epoch = steps, .steps = steps}, nullptr,
                                    std::vector<double>(ranks, 1));
    std::vector<std::vector<Met>> met(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      // Hides the shared word, as if each rank were in its own process.
      if (apart) ends[rank] = std::make_unique<ForwardingCommunicator>(std::move(ends[rank]));
      threads.emplace_back([&, rank] {
        SignalLine line({.communicator = ends[rank].get(),
                         .averaging = &averaging,
                         .clock = &clock,
                         .look = rank == 0 ? look : std::function<StepSignals()>(),
                         .first_step = first_step});
        // As by StepPlan: a launch ends where an action follows.
        const auto acts = [this](int64_t step) { return step % acts_every == acts_every - 1; };
        const auto last_of = [&](int64_t step) {
          int64_t last = step;
          while (last - step + 1 < line.launch_steps() && last + 1 < steps && !acts(last)) ++last;
          return last;
        };
        for (int64_t next = first_step; next < steps;) {
          const int64_t last = last_of(next);
          line.Claim(last);
          work(rank, next);
          next = last + 1;
          const absl::StatusOr<std::optional<StepSignals>> signals =
              line.After(last, acts(last), last_of(next));
          ASSERT_TRUE(signals.ok()) << signals.status();
          if (!signals->has_value()) continue;
          met[rank].push_back({last, (*signals)->pause});
          if ((*signals)->pause) return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(met, Each(met[0]));
    return met;
  }

  FakeClock clock{absl::UnixEpoch()};
  bool apart = false;
  int64_t averaging_every = 0;
  int64_t first_step = 0;
  int64_t steps = 1000;
  int64_t acts_every = 1 << 30;
  std::function<StepSignals()> look = [this] {
    return StepSignals{.pause = pause, .launch_steps = launch_steps};
  };
  std::atomic<bool> pause{false};
  std::atomic<int64_t> launch_steps{1};
};

TEST_F(SignalLineTest, NoRankWaitsWithoutASignal) {
  std::atomic<int64_t> ahead{0};
  const auto work = [&](int rank, int64_t step) {
    // Rank 0 begins when the others have taken all steps.
    while (rank == 0 && step == 0 && ahead < 2) absl::SleepFor(absl::Milliseconds(1));
    if (rank != 0 && step == steps - 1) ++ahead;
  };
  EXPECT_THAT(Run(3, work), Each(IsEmpty()));
}

TEST_F(SignalLineTest, ASignalTakesEffectAfterTheStepOfTheRankThatIsAhead) {
  steps = 1 << 30;
  std::atomic<int64_t> ahead{0};
  const auto work = [&](int rank, int64_t step) {
    if (rank == 1) ahead = step;
    while (rank == 0 && step == 0 && ahead < 300) absl::SleepFor(absl::Milliseconds(1));
    if (rank == 0) pause = true;
  };
  const std::vector<std::vector<Met>> met = Run(3, work);
  ASSERT_THAT(met[0], SizeIs(1));
  EXPECT_TRUE(met[0][0].paused);
  // Rank 1 was in this step when rank 0 rang.
  EXPECT_GE(met[0][0].step, 300);
  EXPECT_EQ(met[0][0].step, ahead);
}

TEST_F(SignalLineTest, ARankAloneActsAtOnce) {
  first_step = 70;
  const std::vector<std::vector<Met>> met = Run(1, [&](int, int64_t step) { pause = step == 80; });
  ASSERT_THAT(met[0], SizeIs(1));
  EXPECT_EQ(met[0][0].step, 80);
}

TEST_F(SignalLineTest, LaunchesNeverCrossAMeeting) {
  acts_every = 50;
  for (int round = 0; round < 200; ++round) {
    pause = false;
    launch_steps = 1 << (round % 5);
    const int64_t at = round * 5 % steps;
    const auto work = [&](int rank, int64_t step) {
      if (step % 7 == rank) std::this_thread::yield();
      if (rank == 0 && step >= at) pause = true;
    };
    const std::vector<std::vector<Met>> met = Run(3, work);
    ASSERT_THAT(met[0], Contains(Met{met[0].back().step, true}));
    // Rank 0 looks at the end of the launch. Others may be ahead, but not past the next action.
    const int64_t paused_at = met[0].back().step;
    EXPECT_GE(paused_at, at);
    EXPECT_LT(paused_at, (at + 16) / acts_every * acts_every + acts_every);
    for (const Met& meeting : met[0]) {
      EXPECT_EQ(meeting.paused, meeting.step == paused_at);
    }
  }
}

TEST_F(SignalLineTest, ProcessesLookFromTimeToTime) {
  apart = true;
  acts_every = 200;
  const std::vector<std::vector<Met>> met = Run(3, [](int, int64_t) {});
  // The steps between two looks grow up to 64, because no time passes.
  EXPECT_THAT(met[0], Contains(Met{199, false}));
  int64_t last = 0;
  for (const Met& meeting : met[0]) {
    EXPECT_LE(meeting.step - last, 64);
    last = meeting.step;
  }
  EXPECT_LT(met[0].size(), 40);
}

TEST_F(SignalLineTest, ProcessesThatTakeTheirOwnStepsLookAtAveragings) {
  apart = true;
  averaging_every = 30;
  const std::vector<std::vector<Met>> met = Run(2, [&](int rank, int64_t step) {
    if (rank == 0 && step == 100) pause = true;
  });
  for (const Met& meeting : met[0]) EXPECT_EQ(meeting.step % 30, 29);
  EXPECT_TRUE(met[0].back().paused);
  EXPECT_GT(met[0].back().step, 100);
}

}  // namespace
}  // namespace tandem
