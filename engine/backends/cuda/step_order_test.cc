#include "engine/backends/cuda/step_order.h"

#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StepOrderTest : public testing::Test {
 protected:
  MemoryRange Range(int begin, int end) { return {memory_ + begin, memory_ + end}; }

  std::byte memory_[100];
  StepOrder order_;
};

TEST_F(StepOrderTest, StepsWithoutCommonMemoryDoNotWait) {
  EXPECT_THAT(order_.Add({}, {Range(0, 10)}), IsEmpty());
  EXPECT_THAT(order_.Add({Range(20, 30)}, {Range(10, 20)}), IsEmpty());
  EXPECT_THAT(order_.Add({Range(20, 30)}, {Range(30, 40)}), IsEmpty());
}

TEST_F(StepOrderTest, AReaderWaitsForTheWriter) {
  EXPECT_THAT(order_.Add({}, {Range(0, 10)}), IsEmpty());
  EXPECT_THAT(order_.Add({}, {Range(10, 20)}), IsEmpty());
  EXPECT_THAT(order_.Add({Range(9, 11)}, {}), ElementsAre(0, 1));
  EXPECT_THAT(order_.Add({Range(0, 9)}, {}), ElementsAre(0));
}

TEST_F(StepOrderTest, AWriterWaitsForReadersAndWriters) {
  EXPECT_THAT(order_.Add({Range(0, 10)}, {}), IsEmpty());
  EXPECT_THAT(order_.Add({Range(5, 15)}, {}), IsEmpty());
  EXPECT_THAT(order_.Add({}, {Range(0, 7)}), ElementsAre(0, 1));
  EXPECT_THAT(order_.Add({}, {Range(12, 20)}), ElementsAre(1));
  EXPECT_THAT(order_.Add({}, {Range(0, 20)}), ElementsAre(2, 3));
}

TEST_F(StepOrderTest, AStepThatChangesMemoryInPlaceDoesNotWaitForItself) {
  EXPECT_THAT(order_.Add({Range(0, 10)}, {Range(0, 10)}), IsEmpty());
  EXPECT_THAT(order_.Add({Range(0, 10)}, {Range(0, 10)}), ElementsAre(0));
}

TEST_F(StepOrderTest, WaitsThatFollowFromOthersAreLeftOut) {
  EXPECT_THAT(order_.Add({}, {Range(0, 10)}), IsEmpty());
  EXPECT_THAT(order_.Add({Range(0, 10)}, {Range(10, 20)}), ElementsAre(0));
  EXPECT_THAT(order_.Add({Range(0, 20)}, {Range(20, 30)}), ElementsAre(1));
}

// Of random steps, exactly those wait for each other, directly or indirectly, that share bytes with a writer.
TEST_F(StepOrderTest, RandomStepsWaitForWhatTheyMust) {
  std::minstd_rand engine(1);
  const auto draw = [&](int below) { return static_cast<int>(engine() % below); };
  struct Touched {
    std::vector<bool> reads = std::vector<bool>(100);
    std::vector<bool> writes = std::vector<bool>(100);
  };
  std::vector<Touched> steps;
  std::vector<std::vector<bool>> waits;     // By the order.
  std::vector<std::vector<bool>> expected;  // Byte by byte.
  for (int step = 0; step < 200; ++step) {
    Touched& own = steps.emplace_back();
    std::vector<MemoryRange> reads, writes;
    for (int i = draw(3); i >= 0; --i) {
      const int begin = draw(95), end = begin + 1 + draw(5);
      const bool is_write = draw(3) == 0;
      (is_write ? writes : reads).push_back(Range(begin, end));
      for (int at = begin; at < end; ++at) (is_write ? own.writes : own.reads)[at] = true;
    }
    std::vector<bool>& found = waits.emplace_back(step);
    for (const int earlier : order_.Add(reads, writes)) {
      found[earlier] = true;
      for (int other = 0; other < earlier; ++other) found[other] = found[other] || waits[earlier][other];
    }
    std::vector<bool>& wanted = expected.emplace_back(step);
    for (int earlier = step - 1; earlier >= 0; --earlier) {
      bool must = false;
      for (int at = 0; at < 100; ++at) {
        must = must || (own.writes[at] && (steps[earlier].reads[at] || steps[earlier].writes[at])) ||
               (own.reads[at] && steps[earlier].writes[at]);
      }
      if (!must) continue;
      wanted[earlier] = true;
      for (int other = 0; other < earlier; ++other) wanted[other] = wanted[other] || expected[earlier][other];
    }
    EXPECT_EQ(found, wanted) << step;
  }
}

}  // namespace
}  // namespace tandem::cuda
