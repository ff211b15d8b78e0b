#include "engine/backend/lowering/arena_plan.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

StepUse Step(std::vector<int> reads, std::vector<int> writes,
             std::vector<std::pair<int, int>> in_place = {}) {
  return {"step", std::move(reads), std::move(writes), std::move(in_place)};
}

bool Overlap(const ArenaPlan& plan, const std::vector<int64_t>& bytes, int a, int b) {
  return plan.offsets[a] < plan.offsets[b] + bytes[b] && plan.offsets[b] < plan.offsets[a] + bytes[a];
}

TEST(ArenaPlanTest, WhatLivesTogetherLiesApart) {
  const std::vector<int64_t> bytes = {256, 512, 256, 1024};
  // 0 -> 1 -> 2 -> 3, and the last step reads 0 again.
  const std::vector<StepUse> steps = {Step({}, {0}), Step({0}, {1}), Step({1}, {2}), Step({2, 0}, {3})};
  const absl::StatusOr<ArenaPlan> plan = PlanArena(bytes, steps, {3});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (int i = 1; i < 4; ++i) EXPECT_FALSE(Overlap(*plan, bytes, 0, i)) << i;
  EXPECT_FALSE(Overlap(*plan, bytes, 1, 2));
  EXPECT_FALSE(Overlap(*plan, bytes, 2, 3));
  // A buffer without later readers makes room.
  EXPECT_LT(plan->bytes, 256 + 512 + 256 + 1024);
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_LE(plan->offsets[i] + bytes[i], plan->bytes);
}

TEST(ArenaPlanTest, AStepMayTakeTheMemoryOfWhatItReadsLast) {
  const std::vector<int64_t> bytes = {1024, 1024};
  const auto planned = [&](std::vector<std::pair<int, int>> in_place) {
    return PlanArena(bytes, {Step({}, {0}), Step({0}, {1}, std::move(in_place))}, {1})->bytes;
  };
  EXPECT_EQ(planned({}), 2048);
  EXPECT_EQ(planned({{0, 0}}), 1024);
}

TEST(ArenaPlanTest, OutputsLiveToTheEnd) {
  const std::vector<int64_t> bytes = {256, 256, 256};
  const std::vector<StepUse> steps = {Step({}, {0}), Step({}, {1}), Step({1}, {2})};
  const absl::StatusOr<ArenaPlan> plan = PlanArena(bytes, steps, {0, 2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(Overlap(*plan, bytes, 0, 1));
  EXPECT_FALSE(Overlap(*plan, bytes, 0, 2));
}

TEST(ArenaPlanTest, WhatLiesElsewhereTakesNothing) {
  const absl::StatusOr<ArenaPlan> plan = PlanArena({-1, 256, 512}, {Step({0}, {1})}, {1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->offsets[0], -1);
  // No step writes it.
  EXPECT_EQ(plan->offsets[2], -1);
  EXPECT_EQ(plan->bytes, 256);
}

TEST(ArenaPlanTest, WhatIsReadWasWritten) {
  const absl::Status status = PlanArena({256, 256}, {Step({0}, {1})}, {1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step"));
}

}  // namespace
}  // namespace tandem
