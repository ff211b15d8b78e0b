#include "server/rpc/fair_pool.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "engine/base/error_reason.h"
#include "engine/base/mutex.h"
#include "engine/base/retry_delay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// Offers a task that keeps its hold.
absl::Status Offer(FairPool& pool, const std::string& user, int64_t bytes,
                   std::vector<FairPool::Hold>& holds) {
  std::promise<absl::StatusOr<FairPool::Hold>> promise;
  std::future<absl::StatusOr<FairPool::Hold>> answer = promise.get_future();
  pool.Offer(user, bytes, [promise = std::move(promise)](absl::StatusOr<FairPool::Hold> hold) mutable {
    promise.set_value(std::move(hold));
  });
  absl::StatusOr<FairPool::Hold> hold = answer.get();
  if (hold.ok()) holds.push_back(*std::move(hold));
  return hold.status();
}

TEST(FairPoolTest, OneUserLeavesThreadsToOthers) {
  FairPool pool(3, 2);
  absl::Notification end;
  absl::BlockingCounter begun(2);
  std::atomic<int> running = 0, most = 0;
  for (int i = 0; i < 10; ++i) {
    pool.Post("ann", [&, i] {
      const int now = ++running;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      if (i < 2) begun.DecrementCount();
      end.WaitForNotification();
      --running;
    });
  }
  begun.Wait();
  // One after another, on the remaining thread.
  for (int i = 0; i < 100; ++i) {
    absl::Notification done;
    pool.Post("bob", [&] { done.Notify(); });
    done.WaitForNotification();
  }
  EXPECT_EQ(running, 2);
  end.Notify();
  pool.Stop();
  EXPECT_EQ(most, 2);
}

TEST(FairPoolTest, UsersTakeTurns) {
  FairPool pool(1, 2);
  absl::Notification begun, begin;
  pool.Post("zoe", [&] {
    begun.Notify();
    begin.WaitForNotification();
  });
  begun.WaitForNotification();
  Mutex mutex;
  std::vector<std::string> order;
  const auto post = [&](const std::string& user, int number) {
    pool.Post(user, [&, user, number] {
      MutexLock lock(&mutex);
      order.push_back(absl::StrCat(user, number));
    });
  };
  for (int i = 0; i < 3; ++i) post("ann", i);
  for (int i = 0; i < 2; ++i) post("bob", i);
  post("cat", 0);
  begin.Notify();
  const auto all_ran = [&] { return order.size() == 6; };
  MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&all_ran));
  EXPECT_THAT(order, ElementsAre("ann0", "bob0", "cat0", "ann1", "bob1", "ann2"));
}

TEST(FairPoolTest, ManyTasksOfManyUsersAllRun) {
  for (int round = 0; round < 20; ++round) {
    FairPool pool(4, 2);
    std::atomic<int> runs = 0;
    for (int i = 0; i < 1000; ++i) {
      pool.Post(absl::StrCat(i % 7), [&pool, &runs, i] {
        ++runs;
        // Tasks post other tasks.
        if (i % 10 == 0) pool.Post(absl::StrCat(i % 3), [&runs] { ++runs; });
      });
    }
    while (runs < 1100) {
    }
    pool.Stop();
    EXPECT_EQ(runs, 1100);
  }
}

TEST(FairPoolTest, WhatWaitsIsDroppedAndWhatRunsGoesOn) {
  FairPool pool(2, 1);
  std::atomic<int> runs = 0;
  absl::Notification begun, end;
  pool.Post("ann", [&] {
    begun.Notify();
    end.WaitForNotification();
    ++runs;
  });
  begun.WaitForNotification();
  auto waiting = std::make_shared<int>(1);
  for (int i = 0; i < 100; ++i) pool.Post("ann", [&runs, waiting] { ++runs; });
  pool.Drop();
  EXPECT_EQ(waiting.use_count(), 1);
  EXPECT_EQ(runs, 0);
  end.Notify();
  pool.Stop();
  EXPECT_EQ(runs, 1);
  auto held = std::make_shared<int>(1);
  // The destructor of a dropped task may post again.
  std::shared_ptr<int> last(new int(2), [&pool](int* number) {
    delete number;
    pool.Post("ann", [] {});
  });
  pool.Post("ann", [&runs, held, last = std::move(last)] { ++runs; });
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(runs, 1);
}

TEST(FairPoolTest, WhatNobodyWantsIsDroppedAndGivesItsRoomBack) {
  FairPool pool(/*threads=*/1, /*most_each=*/1, {.tasks = 2, .bytes = 100, .small = 0});
  absl::Notification begun, end;
  absl::BlockingCounter to_run(3);
  pool.Post("ann", [&] {
    begun.Notify();
    end.WaitForNotification();
  });
  begun.WaitForNotification();
  std::vector<absl::StatusCode> codes;
  const auto interest = std::make_shared<CallInterest>();
  const auto offer = [&](const std::string& user, std::shared_ptr<const CallInterest> interest) {
    pool.Offer(
        user, 50,
        [&](absl::StatusOr<FairPool::Hold> hold) {
          if (hold.ok()) {
            to_run.DecrementCount();
          } else {
            codes.push_back(hold.status().code());
          }
        },
        std::move(interest));
  };
  for (const char* const user : {"ann", "ann", "bob", "bob"}) offer(user, interest);
  offer("ann", nullptr);
  EXPECT_EQ(codes, std::vector<absl::StatusCode>{absl::StatusCode::kResourceExhausted});
  pool.DropUnwanted();
  EXPECT_EQ(codes.size(), 1) << "they are wanted";
  interest->Lose();
  codes.clear();
  pool.DropUnwanted();
  EXPECT_EQ(codes, std::vector<absl::StatusCode>(4, absl::StatusCode::kCancelled));
  codes.clear();
  for (const char* const user : {"ann", "ann", "bob"}) offer(user, nullptr);
  EXPECT_TRUE(codes.empty());
  end.Notify();
  to_run.Wait();
}

TEST(FairPoolTest, AUserWithTooMuchThatWaitsIsRefused) {
  FairPool pool(1, 1, {.tasks = 3, .bytes = 100, .small = 0});
  absl::Notification begun, begin;
  std::atomic<int> runs = 0;
  std::vector<absl::Status> refused;
  pool.Post("ann", [&] {
    begun.Notify();
    begin.WaitForNotification();
  });
  begun.WaitForNotification();
  const auto offer = [&](const std::string& user, int64_t bytes) {
    const size_t before = refused.size();
    pool.Offer(user, bytes, [&](absl::StatusOr<FairPool::Hold> hold) {
      if (hold.ok()) {
        hold->Release();
        ++runs;
      } else {
        refused.push_back(hold.status());
      }
    });
    return refused.size() == before;
  };
  // Without another hold, any size is accepted.
  EXPECT_TRUE(offer("ann", 1000));
  EXPECT_FALSE(offer("ann", 1));
  EXPECT_EQ(refused[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetReason(refused[0]), "TOO_MANY_WAITING_CALLS");
  EXPECT_TRUE(GetRetryDelay(refused[0]).has_value());
  EXPECT_TRUE(offer("bob", 50));
  EXPECT_TRUE(offer("bob", 50));
  EXPECT_FALSE(offer("bob", 1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(offer("cat", 0));
  EXPECT_FALSE(offer("cat", 0));
  // Accepted work continues.
  pool.Post("cat", [&runs] { ++runs; });
  begin.Notify();
  while (runs < 7) {
  }
  // Finished work returns its room.
  EXPECT_TRUE(offer("bob", 100));
  while (runs < 8) {
  }
}

// For example, a call that waits for data to be fetched.
TEST(FairPoolTest, WhatHasRunHoldsItsMemoryUntilItGivesItBack) {
  std::vector<FairPool::Hold> holds;
  {
    FairPool pool(1, 1, {.tasks = 3, .bytes = 100, .small = 0});
    EXPECT_TRUE(Offer(pool, "ann", 60, holds).ok());
    EXPECT_EQ(GetReason(Offer(pool, "ann", 41, holds)), "TOO_MANY_WAITING_CALLS");
    EXPECT_TRUE(Offer(pool, "ann", 40, holds).ok());
    EXPECT_FALSE(Offer(pool, "ann", 1, holds).ok());
    EXPECT_TRUE(Offer(pool, "bob", 10, holds).ok());
    holds.front().Release();
    holds.front().Release();
    EXPECT_TRUE(Offer(pool, "ann", 60, holds).ok());
    EXPECT_FALSE(Offer(pool, "ann", 1, holds).ok());
  }
  // The remaining holds are released after the pool.
  EXPECT_EQ(holds.size(), 4);
}

// For example, two large sweeps that arrive at once.
TEST(FairPoolTest, OfWhatRequestsBecomeTheFirstMayBeAsLargeAsItIs) {
  FairPool pool(1, 1, {.tasks = 3, .bytes = 100, .small = 0});
  std::vector<FairPool::Hold> holds;
  EXPECT_TRUE(Offer(pool, "ann", 50, holds).ok());
  EXPECT_TRUE(Offer(pool, "ann", 40, holds).ok());
  absl::StatusOr<FairPool::Hold> first = pool.HoldMore("ann", 1000);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(GetReason(pool.HoldMore("ann", 1).status()), "TOO_MANY_WAITING_CALLS");
  EXPECT_TRUE(pool.HoldMore("bob", 1).ok());
  // Requests have their own room.
  EXPECT_TRUE(Offer(pool, "ann", 10, holds).ok());
  EXPECT_FALSE(Offer(pool, "ann", 1, holds).ok());
  first->Release();
  first = pool.HoldMore("ann", 60);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(pool.HoldMore("ann", 41).ok());
  EXPECT_TRUE(pool.HoldMore("ann", 40).ok());
}

TEST(FairPoolTest, WhatIsSmallIsLetInWhateverIsHeld) {
  FairPool pool(1, 1, {.tasks = 3, .bytes = 100, .small = 10, .small_bytes = 30});
  std::vector<FairPool::Hold> large, small;
  EXPECT_TRUE(Offer(pool, "ann", 1000, large).ok());
  absl::StatusOr<FairPool::Hold> more = pool.HoldMore("ann", 1000);
  ASSERT_TRUE(more.ok());
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Offer(pool, "ann", 10, small).ok());
    EXPECT_TRUE(Offer(pool, "ann", 0, small).ok());
    small.push_back(*pool.HoldMore("ann", 10));
    EXPECT_FALSE(Offer(pool, "ann", 11, large).ok());
    EXPECT_FALSE(pool.HoldMore("ann", 11).ok());
    // Small requests also have a limit.
    EXPECT_TRUE(Offer(pool, "ann", 10, small).ok());
    EXPECT_FALSE(Offer(pool, "ann", 1, small).ok());
    EXPECT_FALSE(pool.HoldMore("ann", 1).ok());
    // Each is returned to its own kind.
    small.clear();
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Offer(pool, "ann", 10, small).ok());
  large.clear();
  EXPECT_TRUE(Offer(pool, "ann", 100, large).ok());
  EXPECT_FALSE(Offer(pool, "ann", 11, large).ok());
  more->Release();
  EXPECT_TRUE(pool.HoldMore("ann", 100).ok());
}

}  // namespace
}  // namespace tandem
