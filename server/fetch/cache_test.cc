#include "server/fetch/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/sha256.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using internal::v1::CacheEntry;
using ::testing::HasSubstr;

// A clock that a test sets while time passes.
class SetClock : public Clock {
 public:
  absl::Time Now() const override { return time_.Now() + ahead_; }
  absl::Duration Elapsed() const override { return time_.Elapsed(); }
  void Advance(absl::Duration by) { time_.Advance(by); }
  void Set(absl::Duration ahead) { ahead_ = ahead; }

 private:
  FakeClock time_{absl::FromUnixSeconds(1800000000)};
  absl::Duration ahead_;
};

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() { Open(); }

  void Open() {
    cache_.reset();
    Cache::Options options;
    options.folder = folder_;
    options.most_bytes = 1000 * kCacheBlockBytes;
    options.needed = [this] { return needed_; };
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<Cache>> cache = Cache::Open(std::move(options));
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  // Adds a file that takes `blocks` blocks of the disk, one of them as a file. `name` determines its URL and
  // content.
  absl::StatusOr<CacheEntry> Add(const std::string& name, int64_t blocks) {
    const absl::StatusOr<std::string> folder = cache_->Begin(name);
    if (!folder.ok()) return folder.status();
    if (absl::Status room = cache_->Reserve(name, blocks * kCacheBlockBytes); !room.ok()) {
      cache_->Leave(name);
      return room;
    }
    const int64_t bytes = (blocks - 1) * kCacheBlockBytes;
    std::ofstream(*folder + "/files/data") << std::string(bytes, 'x');
    CacheEntry entry;
    entry.set_url("https://example.com/" + name);
    entry.set_url_sha256(*Sha256Of(name));
    entry.set_sha256(*Sha256Of(name + " content"));
    auto* file = entry.add_files();
    file->set_path("data");
    file->set_size_bytes(bytes);
    return cache_->Commit(name, entry);
  }
  int64_t UsedBlocks() { return cache_->used_bytes() / kCacheBlockBytes; }
  std::optional<CacheEntry> Find(const std::string& name) { return cache_->Find(*Sha256Of(name)); }

  TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  SetClock clock_;
  Cache::Needed needed_;
  std::unique_ptr<Cache> cache_;
};

TEST_F(CacheTest, KeepsWhatWasFetchedAcrossRestarts) {
  EXPECT_FALSE(Find("a").has_value());
  ASSERT_TRUE(Add("a", 100).ok());
  Open();
  const std::optional<CacheEntry> entry = Find("a");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(fs::file_size(cache_->PathOf(*entry)), 99 * kCacheBlockBytes);
  EXPECT_EQ(UsedBlocks(), 100);
  EXPECT_TRUE(cache_->Find(*Sha256Of("a"), *Sha256Of("a content")).has_value());
  EXPECT_FALSE(cache_->Find(*Sha256Of("a"), *Sha256Of("other content")).has_value());
}

TEST_F(CacheTest, WhatSomebodyTouchedIsDropped) {
  const absl::StatusOr<CacheEntry> entry = Add("a", 100);
  ASSERT_TRUE(entry.ok()) << entry.status();
  const std::string path = cache_->PathOf(*entry);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_FALSE(Find("a").has_value());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(Add("b", 100).ok());
  // The same size, another time of change.
  const std::string b = cache_->PathOf(*Find("b"));
  fs::last_write_time(b, fs::last_write_time(b) + std::chrono::seconds(1));
  EXPECT_FALSE(Find("b").has_value());
}

TEST_F(CacheTest, WhatWasNotUsedForLongestGoesFirst) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(Add(name, 300).ok());
    clock_.Advance(absl::Hours(1));
  }
  ASSERT_TRUE(Find("a").has_value());
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(Add("d", 300).ok());
  EXPECT_FALSE(Find("b").has_value());
  EXPECT_TRUE(Find("a").has_value());
  EXPECT_TRUE(Find("c").has_value());
  EXPECT_EQ(UsedBlocks(), 900);
}

TEST_F(CacheTest, UsesAreRememberedAcrossRestarts) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(Add(name, 300).ok());
    clock_.Advance(absl::Hours(1));
  }
  ASSERT_TRUE(Find("a").has_value());
  Open();
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(Add("d", 300).ok());
  EXPECT_FALSE(Find("b").has_value());
  EXPECT_TRUE(Find("a").has_value());
}

TEST_F(CacheTest, WhatIsNeededStays) {
  ASSERT_TRUE(Add("a", 600).ok());
  ASSERT_TRUE(Add("b", 300).ok());
  needed_.emplace(*Sha256Of("a"), *Sha256Of("a content"));
  clock_.Advance(absl::Hours(1));
  const absl::Status status = Add("c", 500).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(GetReason(status), "CACHE_FULL");
  EXPECT_THAT(std::string(status.message()), HasSubstr("--cache-size"));
  EXPECT_TRUE(Find("a").has_value());
  EXPECT_TRUE(Add("c", 400).ok()) << "b made room";
}

TEST_F(CacheTest, WhatWasJustUsedStays) {
  ASSERT_TRUE(Add("a", 600).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Add("b", 600).status()))
      << "a job that will name it may be on its way";
  clock_.Advance(absl::Minutes(11));
  EXPECT_TRUE(Add("b", 600).ok());
}

TEST_F(CacheTest, EmptyFilesAndFoldersTakeBlocks) {
  DiskUse use;
  // The folders a, a/b, a/c and d, and 5 files.
  for (const char* path : {"a/b/1", "a/b/2", "a/c/1", "a/d", "d/1"}) use.Add(path, 0);
  EXPECT_EQ(use.bytes(), 9 * kCacheBlockBytes);
  use.Add("e", 10);
  EXPECT_EQ(use.bytes(), 10 * kCacheBlockBytes + 10);
  use.Add("f", std::numeric_limits<int64_t>::max());
  use.Add("g", 0);
  EXPECT_EQ(use.bytes(), std::numeric_limits<int64_t>::max());

  const absl::StatusOr<std::string> folder = cache_->Begin("a");
  ASSERT_TRUE(folder.ok());
  fs::create_directories(*folder + "/files/x/y");
  CacheEntry entry;
  entry.set_url_sha256(*Sha256Of("a"));
  entry.set_sha256(*Sha256Of("a content"));
  entry.set_folder(true);
  for (const char* path : {"x/1", "x/y/1", "z"}) {
    std::ofstream(absl::StrCat(*folder, "/files/", path)) << "";
    entry.add_files()->set_path(path);
  }
  cache_->Leave("a");
  EXPECT_EQ(UsedBlocks(), 3 + 2 + 1) << "3 files, x, x/y and files";
  ASSERT_TRUE(cache_->Begin("a").ok());
  ASSERT_TRUE(cache_->Reserve("a", 5 * kCacheBlockBytes).ok());
  ASSERT_TRUE(cache_->Commit("a", entry).ok());
  EXPECT_EQ(UsedBlocks(), 5);
  Open();
  EXPECT_EQ(UsedBlocks(), 5);
}

TEST_F(CacheTest, WhatTheClockIsSetByIsNoTimeOfUse) {
  ASSERT_TRUE(Add("a", 600).ok());
  clock_.Set(absl::Hours(24));
  EXPECT_TRUE(absl::IsResourceExhausted(Add("b", 600).status())) << "it was just used";
  clock_.Set(-absl::Hours(24));
  clock_.Advance(absl::Minutes(11));
  EXPECT_TRUE(Add("b", 600).ok());
  // The next daemon does not keep it for a day either.
  clock_.Set(-absl::Hours(48));
  Open();
  EXPECT_TRUE(absl::IsResourceExhausted(Add("c", 600).status()));
  clock_.Advance(absl::Minutes(11));
  EXPECT_TRUE(Add("c", 600).ok());
}

TEST_F(CacheTest, WhatWasBegunAndLeftGoesBeforeEntries) {
  ASSERT_TRUE(Add("a", 300).ok());
  const absl::StatusOr<std::string> folder = cache_->Begin("half");
  ASSERT_TRUE(folder.ok());
  EXPECT_FALSE(cache_->Begin("half").ok()) << "one at a time";
  ASSERT_TRUE(cache_->Reserve("half", 600 * kCacheBlockBytes).ok());
  // With the blocks of the file and of its folder.
  std::ofstream(*folder + "/files/data.part") << std::string(498 * kCacheBlockBytes, 'x');
  clock_.Advance(absl::Hours(1));
  EXPECT_FALSE(Add("b", 500).ok()) << "being fetched";
  EXPECT_TRUE(Find("a").has_value()) << "nothing goes where that is not enough";
  cache_->Leave("half");
  EXPECT_EQ(UsedBlocks(), 800);
  EXPECT_TRUE(fs::exists(*folder));
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(Add("b", 500).ok());
  EXPECT_FALSE(fs::exists(*folder));
  EXPECT_TRUE(Find("a").has_value());
}

TEST_F(CacheTest, AFetchWithoutFilesLeavesNothing) {
  const absl::StatusOr<std::string> folder = cache_->Begin("a");
  ASSERT_TRUE(folder.ok());
  fs::create_directories(*folder + "/files/x/y");
  ASSERT_TRUE(cache_->Reserve("a", 600 * kCacheBlockBytes).ok());
  cache_->Leave("a");
  EXPECT_FALSE(fs::exists(*folder));
  EXPECT_EQ(UsedBlocks(), 0);
  EXPECT_TRUE(cache_->Begin("a").ok());
  EXPECT_TRUE(fs::exists(*folder + "/files"));
}

TEST_F(CacheTest, TheSameContentAgainKeepsItsFiles) {
  const absl::StatusOr<CacheEntry> first = Add("a", 100);
  ASSERT_TRUE(first.ok());
  const auto time = fs::last_write_time(cache_->PathOf(*first));
  clock_.Advance(absl::Hours(1));
  const absl::StatusOr<CacheEntry> second = Add("a", 100);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(cache_->PathOf(*first), cache_->PathOf(*second));
  EXPECT_EQ(fs::last_write_time(cache_->PathOf(*second)), time);
  EXPECT_EQ(UsedBlocks(), 100);
  Open();
  EXPECT_TRUE(Find("a").has_value());
}

TEST_F(CacheTest, WhatIsNoEntryIsRemovedAtTheStart) {
  ASSERT_TRUE(Add("a", 100).ok());
  fs::create_directories(folder_ + "/entries/strange/files");
  fs::create_directories(folder_ + "/entries/broken/files");
  fs::create_directories(folder_ + "/partial/empty/files");
  std::ofstream(folder_ + "/entries/broken/entry.json") << "{\"url\": ";
  Open();
  EXPECT_FALSE(fs::exists(folder_ + "/entries/strange"));
  EXPECT_FALSE(fs::exists(folder_ + "/entries/broken"));
  EXPECT_FALSE(fs::exists(folder_ + "/partial/empty"));
  EXPECT_TRUE(Find("a").has_value());
}

}  // namespace
}  // namespace tandem
