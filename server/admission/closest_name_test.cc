#include "server/admission/closest_name.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ClosestNameTest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"state-folder", "data-folder", "listen", "cpu-devices",
                                          "fashion-mnist"};
  EXPECT_EQ(ClosestName("state-foldr", names), "state-folder");
  EXPECT_EQ(ClosestName("STATE_FOLDER", names), "state-folder");
  EXPECT_EQ(ClosestName("lisetn", names), "listen");
  EXPECT_EQ(ClosestName("cpu-device", names), "cpu-devices");
  EXPECT_EQ(ClosestName("fashon-mnist", names), "fashion-mnist");
  EXPECT_EQ(ClosestName("something-else", names), "");
  EXPECT_EQ(ClosestName("", names), "");
  EXPECT_EQ(ClosestName(std::string(100000, 'x'), names), "");
  EXPECT_EQ(ClosestName("x", {}), "");
}

}  // namespace
}  // namespace tandem
