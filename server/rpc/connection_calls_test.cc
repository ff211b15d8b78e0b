#include "server/rpc/connection_calls.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const PeerAddress kAnn = {std::string("\x0a\0\0\x01", 4), 1000};
const PeerAddress kOther = {std::string("\x0a\0\0\x01", 4), 1001};

ConnectionCalls Calls(int64_t number, const PeerAddress& peer, int64_t begun, int64_t answered) {
  return {.number = number, .peer = peer, .begun = begun, .answered = answered};
}

TEST(UnansweredCallsTest, AnsweredCallsAreNoHarm) {
  UnansweredCalls calls({.rate = 200, .of_connection = 2048});
  for (int i = 1; i <= 100; ++i) {
    EXPECT_THAT(calls.Excess({Calls(1, kAnn, i * 10'000, i * 10'000)}, absl::Milliseconds(100 * i)),
                IsEmpty());
  }
}

TEST(UnansweredCallsTest, OpenStreamsAreNoHarmHoweverTheyEnd) {
  UnansweredCalls calls({.rate = 200, .of_connection = 2048});
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2048, 0)}, absl::Seconds(1)), IsEmpty());
  // The client takes them back, which changes nothing, or reads to their ends.
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2048, 0)}, absl::Seconds(2)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2048, 2048)}, absl::Seconds(3)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 4096, 2048)}, absl::Seconds(4)), IsEmpty());
}

TEST(UnansweredCallsTest, ManyThatAreTakenBackAreExcess) {
  UnansweredCalls calls({.rate = 200, .of_connection = 2048});
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 1500, 0), Calls(2, kOther, 10, 0)}, absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 3000, 0), Calls(2, kOther, 20, 0)}, absl::Seconds(1.1)),
              ElementsAre(kAnn));
}

TEST(UnansweredCallsTest, SoManyASecondAreAllowed) {
  UnansweredCalls calls({.rate = 200, .of_connection = 300});
  int64_t begun = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THAT(calls.Excess({Calls(1, kAnn, begun += 19, 0)}, absl::Milliseconds(100 * i)), IsEmpty());
  }
  int looks = 0;
  while (looks < 1000 &&
         calls.Excess({Calls(1, kAnn, begun += 25, 0)}, absl::Milliseconds(100 * (1000 + looks))).empty()) {
    ++looks;
  }
  EXPECT_LT(looks, 100);
}

TEST(UnansweredCallsTest, ConnectionsOfOneAddressCountTogether) {
  UnansweredCalls calls({.rate = 200, .of_connection = 2048, .of_address = 3000});
  const PeerAddress quiet = {kAnn.ip, 1002}, elsewhere = {std::string("\x0a\0\0\x02", 4), 1000};
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 1600, 0), Calls(2, kOther, 1600, 0), Calls(3, quiet, 100, 0),
                            Calls(4, elsewhere, 1600, 0)},
                           absl::Seconds(1)),
              ElementsAre(kAnn, kOther));
}

}  // namespace
}  // namespace tandem
