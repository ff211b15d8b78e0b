#include "server/rpc/blocking_pool.h"

#include <atomic>
#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(BlockingPoolTest, StopRunsWhatWasPostedBefore) {
  BlockingPool pool(2);
  std::atomic<int> runs = 0;
  for (int i = 0; i < 100; ++i) pool.Post([&runs] { ++runs; });
  pool.Stop();
  EXPECT_EQ(runs, 100);
  pool.Stop();
}

// As a log's follower does that a change of its file wakes while the daemon stops.
TEST(BlockingPoolTest, WhatIsPostedAfterStopIsDropped) {
  BlockingPool pool(1);
  pool.Stop();
  bool ran = false;
  auto held = std::make_shared<int>(1);
  // What goes with a dropped task may post once more.
  std::shared_ptr<int> last(new int(2), [&pool](int* number) {
    delete number;
    pool.Post([] {});
  });
  pool.Post([&ran, held, last = std::move(last)] { ran = true; });
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tandem
