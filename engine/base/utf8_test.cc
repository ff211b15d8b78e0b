#include "engine/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(Utf8Test, TakesCharactersOfEveryLength) {
  absl::string_view text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  EXPECT_EQ(TakeCodePoint(&text), 'a');
  EXPECT_EQ(TakeCodePoint(&text), 0xE9);
  EXPECT_EQ(TakeCodePoint(&text), 0x20AC);
  EXPECT_EQ(TakeCodePoint(&text), 0x1F600);
  EXPECT_TRUE(text.empty());
}

TEST(Utf8Test, KnowsWhatIsNotWellFormed) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8(std::string("a\0b", 3)));
  EXPECT_TRUE(IsUtf8("\xF4\x8F\xBF\xBF"));
  for (const char* text : {"\x80", "\xC3", "\xE2\x82", "\xFF", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "a\xC3z"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, EscapesOnlyWhatIsNoCharacter) {
  EXPECT_EQ(ToUtf8("gr\xC3\xB6\xC3\x9F"
                   "e"),
            "gr\xC3\xB6\xC3\x9F"
            "e");
  EXPECT_EQ(ToUtf8("a\xFF\xC3z\xE2\x82"), "a\\xff\\xc3z\\xe2\\x82");
}

}  // namespace
}  // namespace tandem
