#include "server/rpc/completion.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/rpc/reply.h"

namespace tandem {
namespace {

TEST(CompletionTest, IsCalledOnce) {
  int calls = 0;
  absl::Status got;
  {
    Completion<absl::Status> completion([&](absl::Status status) {
      ++calls;
      got = std::move(status);
    });
    Completion<absl::Status> moved = std::move(completion);
    moved(absl::AbortedError("so"));
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(got, absl::AbortedError("so"));
}

TEST(CompletionTest, SaysUnavailableIfItIsDropped) {
  int calls = 0;
  absl::Status got;
  {
    const Completion<absl::StatusOr<int>> completion([&](const absl::StatusOr<int>& result) {
      ++calls;
      got = result.status();
    });
    Completion<absl::StatusOr<int>> nobody;
  }
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(absl::IsUnavailable(got)) << got;
}

TEST(ReplyTest, GivesBackWhatItHoldsBeforeTheAnswer) {
  FairPool pool(1, 1, {.tasks = 3, .bytes = 100, .small = 0});
  absl::StatusOr<FairPool::Hold> hold = pool.HoldMore("ann", 100);
  ASSERT_TRUE(hold.ok());
  std::optional<bool> has_room;
  Reply<int> reply([&](absl::StatusOr<int>) { has_room = pool.HoldMore("ann", 100).ok(); });
  reply.Keep(*std::move(hold));
  EXPECT_FALSE(pool.HoldMore("ann", 100).ok());
  reply(1);
  EXPECT_EQ(has_room, true);
}

TEST(ReplyTest, IsWantedUntilTheInterestIsLost) {
  const auto interest = std::make_shared<CallInterest>();
  Reply<int> reply(Reply<int>::Answer([](absl::StatusOr<int>) {}), interest);
  EXPECT_TRUE(reply.is_wanted());
  interest->Lose();
  EXPECT_FALSE(reply.is_wanted());
}

}  // namespace
}  // namespace tandem
