#include "engine/training/verdict.h"

#include <memory>
#include <thread>
#include <vector>

#include "engine/collectives/local/local_group.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns the verdict that rank 1 gets.
Verdict Shared(Verdict verdict) {
  const std::vector<std::unique_ptr<Communicator>> ends = CreateLocalGroup(2);
  Verdict heard = {.end = v1::STATE_REASON_COMPLETED, .checkpoint = true, .plateau = Plateau::State()};
  std::thread other([&] { EXPECT_TRUE(ShareVerdict(ends[1].get(), &heard).ok()); });
  EXPECT_TRUE(ShareVerdict(ends[0].get(), &verdict).ok());
  other.join();
  return heard;
}

TEST(VerdictTest, AllRanksGetAllOfIt) {
  Plateau::State plateau;
  plateau.rate = 0.1;
  plateau.best = 1 / 3.0;
  plateau.bad_epochs = 5;
  plateau.cooldown_left = 7;
  const Verdict heard =
      Shared({.end = v1::STATE_REASON_TARGET_REACHED, .checkpoint = true, .best = false, .plateau = plateau});
  EXPECT_EQ(heard.end, v1::STATE_REASON_TARGET_REACHED);
  EXPECT_TRUE(heard.checkpoint);
  EXPECT_FALSE(heard.best);
  ASSERT_TRUE(heard.plateau.has_value());
  EXPECT_EQ(heard.plateau->rate, 0.1);
  EXPECT_EQ(heard.plateau->best, 1 / 3.0);
  EXPECT_EQ(heard.plateau->bad_epochs, 5);
  EXPECT_EQ(heard.plateau->cooldown_left, 7);
}

TEST(VerdictTest, MissingPartsAreMissing) {
  Verdict heard = Shared({.best = true});
  EXPECT_FALSE(heard.ends());
  EXPECT_FALSE(heard.checkpoint);
  EXPECT_TRUE(heard.best);
  EXPECT_FALSE(heard.plateau.has_value());
  heard = Shared({.plateau = Plateau::State()});
  ASSERT_TRUE(heard.plateau.has_value());
  EXPECT_FALSE(heard.plateau->best.has_value());
}

}  // namespace
}  // namespace tandem
