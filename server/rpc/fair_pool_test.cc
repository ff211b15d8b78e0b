#include "server/rpc/fair_pool.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "engine/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

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
  // One after the other, on the thread that is left.
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
  pool.Stop();
  EXPECT_THAT(order, ElementsAre("ann0", "bob0", "cat0", "ann1", "bob1", "ann2"));
}

TEST(FairPoolTest, ManyTasksOfManyUsersAllRun) {
  for (int round = 0; round < 20; ++round) {
    FairPool pool(4, 2);
    std::atomic<int> runs = 0;
    for (int i = 0; i < 1000; ++i) {
      pool.Post(absl::StrCat(i % 7), [&pool, &runs, i] {
        ++runs;
        // Tasks post others.
        if (i % 10 == 0) pool.Post(absl::StrCat(i % 3), [&runs] { ++runs; });
      });
    }
    while (runs < 1100) {
    }
    pool.Stop();
    EXPECT_EQ(runs, 1100);
  }
}

TEST(FairPoolTest, StopRunsWhatWasPostedBeforeAndDropsTheRest) {
  FairPool pool(2, 1);
  std::atomic<int> runs = 0;
  for (int i = 0; i < 100; ++i) pool.Post("ann", [&runs] { ++runs; });
  pool.Stop();
  EXPECT_EQ(runs, 100);
  auto held = std::make_shared<int>(1);
  // What goes with a dropped task may post once more.
  std::shared_ptr<int> last(new int(2), [&pool](int* number) {
    delete number;
    pool.Post("ann", [] {});
  });
  pool.Post("ann", [&runs, held, last = std::move(last)] { ++runs; });
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(runs, 100);
}

}  // namespace
}  // namespace tandem
