#include "server/admission/memo.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(MemoTest, RemembersTheNewest) {
  Memo<int> memo;
  EXPECT_EQ(memo.Find("0"), std::nullopt);
  for (int i = 0; i < 40; ++i) memo.Add(std::to_string(i), i);
  memo.Add("39", 7);
  EXPECT_EQ(memo.Find("39"), 39);
  EXPECT_EQ(memo.Find("8"), 8);
  EXPECT_EQ(memo.Find("7"), std::nullopt);
}

}  // namespace
}  // namespace tandem
