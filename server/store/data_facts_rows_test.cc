#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/awaited.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

class DataFactsRowsTest : public testing::Test {
 protected:
  void Put(const std::string& digest, const std::string& facts) {
    Awaited<absl::Status> done;
    store_->Write([&](Transaction& transaction) { return transaction.PutDataFacts(digest, facts); },
                  done.Done());
    const absl::Status status = done.Get();
    ASSERT_TRUE(status.ok()) << status;
  }
  std::optional<std::string> Find(const std::string& digest) { return *store_->FindDataFacts(digest); }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = *Store::Open(folder_.path() + "/tandem.db");
};

TEST_F(DataFactsRowsTest, FactsOutliveTheStore) {
  EXPECT_EQ(Find("a"), std::nullopt);
  Put("a", std::string("1\0", 2));
  Put("b", "2");
  EXPECT_EQ(Find("a"), std::string("1\0", 2));
  Put("a", "3");
  store_.reset();
  store_ = *Store::Open(folder_.path() + "/tandem.db");
  EXPECT_EQ(Find("a"), "3");
  EXPECT_EQ(Find("b"), "2");
}

TEST_F(DataFactsRowsTest, TheOldestGoWhereThereAreTooMany) {
  for (int64_t i = 0; i <= kMostDataFactsKept; ++i) Put(absl::StrCat(i), "facts");
  EXPECT_EQ(Find("0"), std::nullopt);
  EXPECT_EQ(Find("1"), "facts");
  EXPECT_EQ(Find(absl::StrCat(kMostDataFactsKept)), "facts");
}

TEST_F(DataFactsRowsTest, TheOldestGoWhereTheyTakeTooMuch) {
  const std::string large(kMostDataFactsBytesKept / 2 - 1, 'x');
  Put("a", large);
  Put("b", large);
  EXPECT_NE(Find("a"), std::nullopt);
  Put("c", "more");
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_EQ(Find("b"), large);
  EXPECT_EQ(Find("c"), "more");
}

// Other users' sets and unnamed files may have any number of facts.
TEST_F(DataFactsRowsTest, EachPrefixHasRoomOfItsOwn) {
  Put("named/ann/a", "mine");
  Put("named//a", "nobody's");
  for (int64_t i = 0; i <= kMostDataFactsKept; ++i) Put(absl::StrCat(i), "facts");
  EXPECT_EQ(Find("0"), std::nullopt);
  for (int64_t i = 0; i <= kMostDataFactsKept; ++i) Put(absl::StrCat("named/bob/", i), "facts");
  EXPECT_EQ(Find("named/bob/0"), std::nullopt);
  EXPECT_EQ(Find("named/ann/a"), "mine");
  EXPECT_EQ(Find("named//a"), "nobody's");
  EXPECT_EQ(Find("1"), "facts");
}

}  // namespace
}  // namespace tandem
