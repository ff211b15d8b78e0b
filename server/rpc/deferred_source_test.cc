#include "server/rpc/deferred_source.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(DeferredSourceTest, ACancelledStreamWaitsForNoThread) {
  FairPool pool(1, 1, {.tasks = 3, .bytes = 100, .small = 0});
  absl::Notification end;
  pool.Post("ann", [&end] { end.WaitForNotification(); });
  bool opened = false;
  DeferredSource<int> source(&pool, "ann", 100,
                             [&opened]() -> absl::StatusOr<std::unique_ptr<ItemSource<int>>> {
                               opened = true;
                               return absl::InternalError("there is none");
                             });
  absl::Status status;
  source.Next([&status](ItemSource<int>::Result result) { status = result.status(); });
  pool.DropUnwanted();
  EXPECT_TRUE(status.ok()) << "somebody waits: " << status;
  absl::Status refused;
  pool.Offer("ann", 100, [&refused](absl::StatusOr<FairPool::Hold> hold) { refused = hold.status(); });
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  source.Cancel();
  pool.DropUnwanted();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  // The room is free again.
  absl::Notification taken;
  pool.Offer("ann", 100, [&taken](absl::StatusOr<FairPool::Hold> hold) {
    if (hold.ok()) taken.Notify();
  });
  end.Notify();
  taken.WaitForNotification();
  EXPECT_FALSE(opened);
}

}  // namespace
}  // namespace tandem
