#include "server/rpc/unary_counts.h"

#include <memory>
#include <vector>

#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr bool kRepeatable = true;
using Places = std::vector<std::unique_ptr<UnaryCounts::Place>>;

// Begins a call and keeps its place. Returns the reason of the refusal, or "".
std::string Begin(UnaryCounts& counts, absl::string_view user, absl::string_view connection, Places& places,
                  bool is_admin = false) {
  absl::StatusOr<std::unique_ptr<UnaryCounts::Place>> place = counts.Begin(user, is_admin, connection);
  if (!place.ok()) {
    EXPECT_EQ(place.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(GetRetryDelay(place.status()).has_value());
    return GetReason(place.status());
  }
  places.push_back(*std::move(place));
  return "";
}

TEST(UnaryCountsTest, CountsCallsOfUsersAndConnections) {
  UnaryCounts counts({.of_user = 3, .of_connection = 2});
  Places ann, bob, admin;
  EXPECT_EQ(Begin(counts, "ann", "a", ann), "");
  EXPECT_EQ(Begin(counts, "ann", "a", ann), "");
  EXPECT_EQ(Begin(counts, "ann", "a", ann), "TOO_MANY_CALLS");
  EXPECT_EQ(Begin(counts, "ann", "b", ann), "");
  EXPECT_EQ(Begin(counts, "ann", "c", ann), "TOO_MANY_CALLS");
  EXPECT_EQ(Begin(counts, "bob", "c", bob), "");
  // The administrator has no user's limits, but the connections' limits.
  for (const char* const connection : {"d", "d", "e", "e"}) {
    EXPECT_EQ(Begin(counts, "admin", connection, admin, /*is_admin=*/true), "");
  }
  EXPECT_EQ(Begin(counts, "admin", "e", admin, /*is_admin=*/true), "TOO_MANY_CALLS");
  ann.clear();
  for (const char* const connection : {"a", "a", "b"}) EXPECT_EQ(Begin(counts, "ann", connection, ann), "");
}

TEST(UnaryCountsTest, CountsUnreadAnswersInBytes) {
  UnaryCounts counts({.answer_bytes = 100});
  Places ann, bob;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Begin(counts, "ann", "a", ann), "");
  ASSERT_EQ(Begin(counts, "bob", "b", bob), "");
  EXPECT_TRUE(ann[0]->HoldAnswer(60, kRepeatable).ok());
  EXPECT_TRUE(ann[1]->CheckRoom().ok());
  EXPECT_EQ(GetReason(ann[1]->HoldAnswer(41, kRepeatable)), "TOO_MANY_UNREAD_ANSWERS");
  EXPECT_TRUE(ann[2]->HoldAnswer(40, kRepeatable).ok());
  // Work whose answer could not be sent does not begin, neither for new nor for waiting calls.
  EXPECT_EQ(GetReason(ann[1]->CheckRoom()), "TOO_MANY_UNREAD_ANSWERS");
  EXPECT_EQ(Begin(counts, "ann", "a", ann), "TOO_MANY_UNREAD_ANSWERS");
  // A single answer is always allowed.
  EXPECT_TRUE(bob[0]->HoldAnswer(1000, kRepeatable).ok());
  ann[0] = nullptr;
  EXPECT_EQ(Begin(counts, "ann", "a", ann), "");
  EXPECT_TRUE(ann[3]->HoldAnswer(60, kRepeatable).ok());
}

// A second CreateJob would create a second job.
TEST(UnaryCountsTest, NeverRefusesWhatCannotBeRepeated) {
  UnaryCounts counts({.answer_bytes = 100});
  Places ann;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Begin(counts, "ann", "a", ann), "");
  EXPECT_TRUE(ann[0]->HoldAnswer(60, kRepeatable).ok());
  EXPECT_TRUE(ann[1]->HoldAnswer(1000, !kRepeatable).ok());
  EXPECT_EQ(Begin(counts, "ann", "a", ann), "TOO_MANY_UNREAD_ANSWERS") << "it counts all the same";
}

}  // namespace
}  // namespace tandem
