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

const KnownFacts::Place kNamed = {.owner = "ann", .is_named = true};
const KnownFacts::Place kOther = {.owner = "ann"};

// Stands for the daemon's database.
struct Kept {
  DurableFacts Durable() {
    return {.find = [this](const std::string& key) -> std::optional<std::string> {
              const auto found = facts.find(key);
              if (found == facts.end()) return std::nullopt;
              return found->second;
            },
            .put = [this](const std::string& key, std::string put) { facts[key] = std::move(put); }};
  }
  std::map<std::string, std::string> facts;
};

TEST(KnownFactsTest, RemembersFactsAndWhatIsWrong) {
  KnownFacts known({});
  EXPECT_EQ(known.Find("a", kOther), std::nullopt);
  known.Add("a", Facts(1), kOther);
  known.Add("b", FieldError("idx.classes", "is wrong"), kOther);
  known.Add("c", absl::ResourceExhaustedError("no memory"), kOther);
  ASSERT_TRUE(known.Find("a", kOther).has_value());
  EXPECT_EQ((*known.Find("a", kOther))->dataset().train_samples(), 1);
  ASSERT_TRUE(known.Find("b", kOther).has_value());
  EXPECT_EQ(GetFieldViolations(known.Find("b", kOther)->status())[0].field, "idx.classes");
  EXPECT_EQ(known.Find("c", kOther), std::nullopt) << "the machine may have memory the next time";
}

TEST(KnownFactsTest, FactsAloneAreDurable) {
  Kept kept;
  {
    KnownFacts known(kept.Durable());
    known.Add("a", Facts(1), kOther);
    known.Add("b", FieldError("idx.classes", "is wrong"), kOther);
  }
  EXPECT_EQ(kept.facts.size(), 1);
  KnownFacts known(kept.Durable());
  ASSERT_TRUE(known.Find("a", kOther).has_value());
  EXPECT_EQ((*known.Find("a", kOther))->dataset().train_samples(), 1);
  // The next look-ups must not read the database.
  kept.facts["a"] = "damaged";
  EXPECT_EQ((*known.Find("a", kOther))->dataset().train_samples(), 1);
  EXPECT_EQ(KnownFacts(kept.Durable()).Find("a", kOther), std::nullopt);
}

TEST(KnownFactsTest, WhatANamedSetIsFoundByIsKeptForIt) {
  Kept kept;
  KnownFacts known(kept.Durable());
  known.Add("a", Facts(1), kOther);
  EXPECT_FALSE(kept.facts.contains("named/ann/a"));
  EXPECT_TRUE(known.Find("a", kNamed).has_value());
  EXPECT_TRUE(kept.facts.contains("named/ann/a"));
  // The reverse direction copies nothing.
  known.Add("b", Facts(2), kNamed);
  EXPECT_EQ((*known.Find("b", kOther))->dataset().train_samples(), 2);
  EXPECT_FALSE(kept.facts.contains("b"));
}

TEST(KnownFactsTest, TheOldestGoWhereThereIsNoRoom) {
  KnownFacts known({});
  internal::v1::DataFacts large;
  large.set_one_class_mend(std::string(1 << 20, 'x'));
  known.Add("named", large, kNamed);
  // The room has 4 MiB, and each entry takes some of it.
  for (int i = 0; i < 3; ++i) known.Add(absl::StrCat(i), large, kOther);
  // Replacing an entry forgets nothing else.
  known.Add("2", large, kOther);
  EXPECT_NE(known.Find("0", kOther), std::nullopt);
  known.Add("3", large, kOther);
  EXPECT_EQ(known.Find("0", kOther), std::nullopt);
  EXPECT_NE(known.Find("1", kOther), std::nullopt) << "one goes for one that comes";
  for (int i = 4; i < 50; ++i) known.Add(absl::StrCat(i), large, kOther);
  EXPECT_NE(known.Find("49", kOther), std::nullopt);
  for (int i = 0; i < 50; ++i) known.Add(absl::StrCat(i), large, {.owner = "bob", .is_named = true});
  EXPECT_NE(known.Find("named", kOther), std::nullopt) << "each owner's named sets have room of their own";
}

}  // namespace
}  // namespace tandem
