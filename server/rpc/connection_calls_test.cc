#include "server/rpc/connection_calls.h"

#include <string>
#include <utility>
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

// Returns the peers that do harm.
class Finder {
 public:
  explicit Finder(const UnansweredCalls::Limits& limits) : calls_(limits) {}
  std::vector<PeerAddress> Excess(const std::vector<ConnectionCalls>& looked, absl::Duration now) {
    Harm harm = calls_.Excess(looked, now);
    EXPECT_TRUE(harm.is_likely || harm.peers.empty());
    return harm.peers;
  }

 private:
  UnansweredCalls calls_;
};

TEST(UnansweredCallsTest, AnsweredCallsAreNoHarm) {
  Finder calls({.rate = 200, .of_connection = 2048});
  for (int i = 1; i <= 100; ++i) {
    EXPECT_THAT(calls.Excess({Calls(1, kAnn, i * 10'000, i * 10'000)}, absl::Milliseconds(100 * i)),
                IsEmpty());
  }
}

TEST(UnansweredCallsTest, OpenStreamsAreNoHarmHoweverTheyEnd) {
  Finder calls({.rate = 200, .of_connection = 2048});
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2048, 0)}, absl::Seconds(1)), IsEmpty());
  // Whether the client cancels the calls or reads their ends makes no difference.
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2048, 0)}, absl::Seconds(2)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2048, 2048)}, absl::Seconds(3)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 4096, 2048)}, absl::Seconds(4)), IsEmpty());
}

TEST(UnansweredCallsTest, ManyThatAreTakenBackAreExcess) {
  Finder calls({.rate = 200, .of_connection = 2048});
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 1500, 0), Calls(2, kOther, 10, 0)}, absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 3000, 0), Calls(2, kOther, 20, 0)}, absl::Seconds(1.1)),
              ElementsAre(kAnn));
}

TEST(UnansweredCallsTest, SoManyASecondAreAllowed) {
  Finder calls({.rate = 200, .of_connection = 300});
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
  Finder calls({.rate = 200, .of_connection = 2048, .of_address = 3000});
  const PeerAddress quiet = {kAnn.ip, 1002}, elsewhere = {std::string("\x0a\0\0\x02", 4), 1000};
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 1600, 0), Calls(2, kOther, 1600, 0), Calls(3, quiet, 100, 0),
                            Calls(4, elsewhere, 1600, 0)},
                           absl::Seconds(1)),
              ElementsAre(kAnn, kOther));
}

TEST(UnansweredCallsTest, WhoConnectsAgainDoesNotBeginAnew) {
  Finder calls({.rate = 200, .of_connection = 2048, .of_address = 8192});
  const PeerAddress elsewhere = {std::string("\x0a\0\0\x02", 4), 1000};
  // Each connection is closed below the limit, before the next look.
  int looks = 0;
  for (; looks < 20; ++looks) {
    const PeerAddress peer = {kAnn.ip, 2000 + looks};
    const auto excess = calls.Excess({Calls(10 + looks, peer, 1000, 0), Calls(1, elsewhere, 1000, 0)},
                                     absl::Milliseconds(100 * looks));
    if (excess.empty()) continue;
    EXPECT_THAT(excess, ElementsAre(peer));
    break;
  }
  EXPECT_LT(looks, 10);
  // A neighbour with few calls continues, and after a while the address is unrestricted.
  EXPECT_THAT(calls.Excess({Calls(2, kAnn, 100, 0)}, absl::Seconds(2)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(3, kAnn, 1000, 0)}, absl::Seconds(60)), IsEmpty());
}

// The server cannot read from so many connections, so the waiting connections are shut unread.
TEST(UnansweredCallsTest, ConnectionsThatWaitAreInExcessWithTheirAddress) {
  Finder calls({.rate = 200, .of_connection = 2048, .of_address = 3000});
  const PeerAddress waiting = {kAnn.ip, 1002}, comes = {kAnn.ip, 1003},
                    elsewhere = {std::string("\x0a\0\0\x02", 4), 1};
  EXPECT_THAT(calls.Excess({Calls(1, kAnn, 2000, 0), Calls(2, kOther, 1, 0), Calls(3, waiting, 0, 0),
                            Calls(4, elsewhere, 0, 0)},
                           absl::Seconds(1)),
              IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(5, kAnn, 2000, 0), Calls(2, kOther, 1, 0), Calls(3, waiting, 0, 0),
                            Calls(4, elsewhere, 0, 0), Calls(6, comes, 0, 0)},
                           absl::Seconds(1.1)),
              ElementsAre(kAnn, waiting));
  // A little more than ten seconds later, its connections may be silent again.
  EXPECT_THAT(calls.Excess({Calls(6, comes, 0, 0)}, absl::Seconds(12)), IsEmpty());
}

// Other users of this machine may be waiting there.
TEST(UnansweredCallsTest, ConnectionsThatWaitOnLoopbackStay) {
  Finder calls({.rate = 200, .of_connection = 2048, .of_address = 3000});
  const std::string local("\x7f\0\0\1", 4);
  const PeerAddress bad = {local, 1}, waiting = {local, 2};
  EXPECT_THAT(calls.Excess({Calls(1, bad, 2000, 0), Calls(2, waiting, 0, 0)}, absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(calls.Excess({Calls(3, bad, 2000, 0), Calls(2, waiting, 0, 0)}, absl::Seconds(1.1)),
              ElementsAre(bad));
}

TEST(UnansweredCallsTest, SomethingToLookAtIsLikely) {
  UnansweredCalls calls({.rate = 200, .of_connection = 2048, .of_address = 3000});
  EXPECT_FALSE(calls.Excess({Calls(1, kAnn, 100, 0)}, absl::Seconds(1)).is_likely);
  EXPECT_TRUE(calls.Excess({Calls(1, kAnn, 500, 0)}, absl::Seconds(1.1)).is_likely);
  EXPECT_FALSE(calls.Excess({Calls(1, kAnn, 500, 0)}, absl::Seconds(4)).is_likely);
}

TEST(UnansweredCallsTest, NetworksAndLoopbackAreOneSource) {
  const std::string network(8, '\x20'), one = network + std::string(8, '\1'),
                                        two = network + std::string(8, '\2');
  EXPECT_EQ(SourceOf(one), SourceOf(two));
  EXPECT_NE(SourceOf(kAnn.ip), SourceOf(std::string("\x0a\0\0\x02", 4)));
  const std::string local("\x7f\0\0\1", 4), other_local("\x7f\1\2\3", 4);
  EXPECT_TRUE(IsLoopback(local));
  EXPECT_TRUE(IsLoopback(other_local));
  EXPECT_TRUE(IsLoopback(std::string(15, '\0') + '\1'));
  EXPECT_FALSE(IsLoopback(one));
  EXPECT_FALSE(IsLoopback(kAnn.ip));
  for (const auto& [first, second] : {std::pair(one, two), std::pair(local, other_local)}) {
    Finder calls({.rate = 200, .of_connection = 2048, .of_address = 3000});
    EXPECT_EQ(calls.Excess({Calls(1, {first, 1}, 1600, 0), Calls(2, {second, 1}, 1600, 0)}, absl::Seconds(1))
                  .size(),
              2);
  }
}

TEST(LookTimesTest, ANearlyIdleProcessLooksOnceASecond) {
  LookTimes times;
  int looks = 0;
  absl::Duration used = absl::Seconds(5);
  // A hundredth of a core.
  for (int i = 0; i < 100; ++i)
    looks += times.MustLook(absl::Milliseconds(100 * i), used += absl::Milliseconds(1));
  EXPECT_EQ(looks, 10);
  // A fifth of a core.
  for (int i = 100; i < 200; ++i)
    EXPECT_TRUE(times.MustLook(absl::Milliseconds(100 * i), used += absl::Milliseconds(20)));
  EXPECT_FALSE(times.MustLook(absl::Milliseconds(20'000), used));
  // Idle for long, then busy.
  EXPECT_TRUE(times.MustLook(absl::Seconds(30), used));
  EXPECT_FALSE(times.MustLook(absl::Seconds(30.1), used));
  EXPECT_TRUE(times.MustLook(absl::Seconds(30.2), used + absl::Milliseconds(10)));
}

}  // namespace
}  // namespace tandem
