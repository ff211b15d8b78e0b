#include "server/admission/known_facts.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

internal::v1::DataFacts Facts(int64_t samples) {
  internal::v1::DataFacts facts;
  facts.mutable_dataset()->set_train_samples(samples);
  return facts;
}

TEST(KnownFactsTest, RemembersFactsAndWhatIsWrong) {
  KnownFacts known({});
  EXPECT_EQ(known.Find("a"), std::nullopt);
  known.Add("a", Facts(1));
  known.Add("b", FieldError("idx.classes", "is wrong"));
  known.Add("c", absl::ResourceExhaustedError("no memory"));
  ASSERT_TRUE(known.Find("a").has_value());
  EXPECT_EQ((*known.Find("a"))->dataset().train_samples(), 1);
  ASSERT_TRUE(known.Find("b").has_value());
  EXPECT_EQ(GetFieldViolations(known.Find("b")->status())[0].field, "idx.classes");
  EXPECT_EQ(known.Find("c"), std::nullopt) << "the machine may have memory the next time";
}

TEST(KnownFactsTest, FactsAloneAreDurable) {
  std::map<std::string, std::string> kept;
  const DurableFacts durable = {
      .find = [&](const std::string& digest) -> std::optional<std::string> {
        const auto found = kept.find(digest);
        if (found == kept.end()) return std::nullopt;
        return found->second;
      },
      .put = [&](const std::string& digest, std::string facts) { kept[digest] = std::move(facts); }};
  {
    KnownFacts known(durable);
    known.Add("a", Facts(1));
    known.Add("b", FieldError("idx.classes", "is wrong"));
  }
  EXPECT_EQ(kept.size(), 1);
  KnownFacts known(durable);
  ASSERT_TRUE(known.Find("a").has_value());
  EXPECT_EQ((*known.Find("a"))->dataset().train_samples(), 1);
  // From now on without a look at what is kept.
  kept["a"] = "damaged";
  EXPECT_EQ((*known.Find("a"))->dataset().train_samples(), 1);
  EXPECT_EQ(KnownFacts(durable).Find("a"), std::nullopt);
}

TEST(KnownFactsTest, TakesLittleMemory) {
  KnownFacts known({});
  internal::v1::DataFacts large;
  large.set_one_class_mend(std::string(1 << 20, 'x'));
  // Of 32 MiB, with something for each.
  for (int i = 0; i < 31; ++i) known.Add(absl::StrCat(i), large);
  // In the place of one that is there: nothing is lost.
  known.Add("30", large);
  EXPECT_NE(known.Find("0"), std::nullopt);
  for (int i = 31; i < 33; ++i) known.Add(absl::StrCat(i), large);
  EXPECT_EQ(known.Find("0"), std::nullopt);
  EXPECT_NE(known.Find("32"), std::nullopt);
}

}  // namespace
}  // namespace tandem
