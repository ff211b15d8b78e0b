#include "server/fetch/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/retry_delay.h"
#include "engine/base/sha256.h"
#include "proto/data_folder/shards.h"
#include "server/fetch/data_url.h"
#include "server/fetch/fake_transport.h"
#include "server/fetch/public_sets.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
// Room for the content and the blocks of each test's files.
constexpr int64_t kCacheBytes = 4000000;
// Of the files of a user's plans.
constexpr int64_t kPlanBytes = 100000;
constexpr char kTable[] = "https://example.com/table.csv";

v1::DatasetSpec Csv(const std::string& train) {
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(train);
  return spec;
}

v1::DatasetSpec Folder(const std::string& train) {
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(train);
  return spec;
}

v1::DatasetSpec Shards(const std::string& train) {
  v1::DatasetSpec spec;
  spec.mutable_webdataset()->set_train(train);
  return spec;
}

// The result of a call, perhaps from another thread.
template <typename Value>
class Answer {
 public:
  void operator()(Value value) {
    MutexLock lock(&mutex_);
    value_ = std::move(value);
  }
  Value Get() {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Answer::Has));
    return *value_;
  }
  bool has() {
    MutexLock lock(&mutex_);
    return Has();
  }

 private:
  bool Has() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return value_.has_value(); }
  Mutex mutex_;
  std::optional<Value> value_ ABSL_GUARDED_BY(mutex_);
};

using SpecAnswer = Answer<absl::StatusOr<v1::DatasetSpec>>;

class FetcherTest : public ::testing::Test {
 protected:
  FetcherTest() { Start(); }

  void Start(const std::vector<std::string>& fetch_from = {"public", "s3://*"}) {
    fetcher_.reset();
    web_ = std::make_unique<FakeTransport>();
    Cache::Options cache;
    cache.folder = folder_ + "/cache";
    cache.most_bytes = kCacheBytes;
    cache.needed = [] { return Cache::Needed(); };
    cache.clock = &clock_;
    cache_ = *Cache::Open(std::move(cache));
    Fetcher::Options options;
    options.policy = *FetchPolicy::Parse(fetch_from);
    options.public_folder = folder_ + "/public";
    options.mirror = "http://mirror.local/sets";
    options.environment = [](const std::string& name) -> std::optional<std::string> {
      if (name == "AWS_ACCESS_KEY_ID") return "key";
      if (name == "AWS_SECRET_ACCESS_KEY") return "secret";
      if (name == "AWS_ENDPOINT_URL") return "http://s3.local";
      return std::nullopt;
    };
    options.threads = 3;
    options.threads_per_user = 2;
    options.plan_bytes_per_user = kPlanBytes;
    options.retry = {.attempts = 2, .first_wait = absl::Milliseconds(1)};
    options.clock = &clock_;
    fetcher_ = std::make_unique<Fetcher>(std::move(options), cache_.get(), web_.get());
  }

  absl::StatusOr<v1::DatasetSpec> Ensure(const v1::DatasetSpec& spec, absl::Duration wait = kLong,
                                         const std::string& user = "ann") {
    auto answer = std::make_shared<SpecAnswer>();
    fetcher_->Ensure(spec, user, wait,
                     [answer](absl::StatusOr<v1::DatasetSpec> pinned) { (*answer)(std::move(pinned)); });
    return answer->Get();
  }
  absl::Status FetchPublicSet(const std::string& name) {
    auto answer = std::make_shared<Answer<absl::Status>>();
    fetcher_->FetchPublicSet(name, "ann", kLong,
                             [answer](absl::Status status) { (*answer)(std::move(status)); });
    return answer->Get();
  }
  std::string Local(const std::string& url, PathKind kind = PathKind::kFile) {
    const absl::StatusOr<std::string> path = fetcher_->LocalPath(url, kind);
    EXPECT_TRUE(path.ok()) << path.status();
    return path.ok() ? *path : "";
  }
  // Returns the paths of the fetched shards; empty paths after an error.
  std::vector<std::string> LocalShards(const std::string& url) {
    const absl::StatusOr<std::vector<std::string>> shards = ListShards(Local(url, PathKind::kShards));
    EXPECT_TRUE(shards.ok()) << shards.status();
    return shards.value_or(std::vector<std::string>(100));
  }
  // Adds a page of a bucket's listing. An object's content is its key, size and tag.
  void PutPage(const std::string& query, const std::vector<std::string>& keys, const std::string& next = "") {
    std::string xml =
        "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    for (const std::string& key : keys) {
      absl::StrAppend(&xml, "<Contents><Key>", key, "</Key><Size>", key.size(), "</Size><ETag>&quot;",
                      key.size(), "&quot;</ETag></Contents>");
      web_->Put("http://s3.local/bucket/" + key, key, absl::StrCat("\"", key.size(), "\""));
    }
    absl::StrAppend(&xml, "<IsTruncated>", next.empty() ? "false" : "true", "</IsTruncated>");
    if (!next.empty()) absl::StrAppend(&xml, "<NextContinuationToken>", next, "</NextContinuationToken>");
    web_->Put("http://s3.local/bucket/?" + query, xml + "</ListBucketResult>");
  }

  TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  FakeClock clock_{absl::Now()};
  std::unique_ptr<FakeTransport> web_;
  std::unique_ptr<Cache> cache_;
  std::unique_ptr<Fetcher> fetcher_;
};

TEST_F(FetcherTest, PinsWhatItFetches) {
  web_->Put(kTable, "a,b\n1,2\n");
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Csv(kTable));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->csv().train(), absl::StrCat(kTable, "#sha256=", *Sha256Of("a,b\n1,2\n")));
  EXPECT_LE(spec->SpaceUsedLong(), Csv(kTable).SpaceUsedLong() + PinBytes(Csv(kTable)));
  EXPECT_EQ(PinBytes(Csv("/data/train.csv")), 0);
  EXPECT_EQ(ContentOrEmpty(Local(spec->csv().train())), "a,b\n1,2\n");
  EXPECT_EQ(fs::path(Local(spec->csv().train())).filename(), "table.csv");
  EXPECT_FALSE(fetcher_->LocalPath(spec->csv().train(), PathKind::kFolder).ok());
}

TEST_F(FetcherTest, SpecsWithoutUrlsAreLeftAlone) {
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Csv("table.csv"), absl::ZeroDuration());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->csv().train(), "table.csv");
}

TEST_F(FetcherTest, AskedAgainItAsksWhetherItHasChanged) {
  web_->Put(kTable, "old", "\"old\"");
  const std::string old = Ensure(Csv(kTable))->csv().train();
  ASSERT_TRUE(Ensure(Csv(kTable)).ok());
  EXPECT_EQ(web_->requests().size(), 1) << "a moment ago";
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Ensure(Csv(kTable))->csv().train(), old);
  EXPECT_EQ(web_->requests().back().headers, std::vector<std::string>{"If-None-Match: \"old\""});
  web_->Put(kTable, "new", "\"new\"");
  clock_.Advance(absl::Minutes(1));
  const std::string changed = Ensure(Csv(kTable))->csv().train();
  EXPECT_NE(changed, old);
  EXPECT_EQ(ContentOrEmpty(Local(changed)), "new");
  EXPECT_EQ(ContentOrEmpty(Local(old)), "old") << "jobs that were submitted before still name it";
  EXPECT_TRUE(Ensure(Csv(old), absl::ZeroDuration()).ok()) << "pinned and here: nobody is asked";
}

TEST_F(FetcherTest, WithoutItsServerTheCachedCopyIsUsed) {
  web_->Put(kTable, "x");
  ASSERT_TRUE(Ensure(Csv(kTable)).ok());
  clock_.Advance(absl::Minutes(1));
  for (int i = 0; i < 2; ++i) web_->Befall(kTable, {.error = absl::UnavailableError("nobody there")});
  EXPECT_TRUE(Ensure(Csv(kTable)).ok());
  clock_.Advance(absl::Minutes(1));
  web_->Befall(kTable, {.status = 403});
  EXPECT_FALSE(Ensure(Csv(kTable)).ok()) << "who may not read it any more does not";
}

TEST_F(FetcherTest, ManyWhoAskGetOneFetch) {
  web_->Put(kTable, "x");
  web_->Hold(true);
  SpecAnswer first, second;
  fetcher_->Ensure(Csv(kTable), "ann", kLong,
                   [&](absl::StatusOr<v1::DatasetSpec> spec) { first(std::move(spec)); });
  fetcher_->Ensure(Csv(kTable), "ann", kLong,
                   [&](absl::StatusOr<v1::DatasetSpec> spec) { second(std::move(spec)); });
  EXPECT_FALSE(first.has());
  web_->Hold(false);
  EXPECT_TRUE(first.Get().ok());
  EXPECT_TRUE(second.Get().ok());
  EXPECT_EQ(web_->requests().size(), 1);
}

TEST_F(FetcherTest, SlowServersOfOneUserHoldUpNobodyElse) {
  web_->Put(kTable, "x");
  web_->Hold(true, "https://slow.example/");
  for (int i = 0; i < 8; ++i) {
    const absl::Status slow =
        Ensure(Csv(absl::StrCat("https://slow.example/", i)), absl::ZeroDuration(), "mallory").status();
    EXPECT_EQ(GetReason(slow), kDataBeingFetched);
  }
  ASSERT_TRUE(web_->AwaitRequests(2)) << "mallory's threads are on their way";
  // Another user's fetch waits only for that user's share, even if mallory asks for the same data.
  EXPECT_EQ(GetReason(Ensure(Csv(kTable), absl::ZeroDuration(), "mallory").status()), kDataBeingFetched);
  EXPECT_TRUE(Ensure(Csv(kTable), kLong, "ann").ok());
  EXPECT_EQ(web_->requests().size(), 3) << "two of mallory's, and ann's";
  web_->Hold(false);
  EXPECT_EQ(GetReason(Ensure(Csv("https://slow.example/7"), kLong, "mallory").status()), "FETCH_FAILED")
      << "they had their turn";
}

TEST_F(FetcherTest, WaitingFetchesOfAUserAreLimited) {
  web_->Put(kTable, "x");
  web_->Hold(true, "https://slow.example/");
  const auto ask = [&](int i, absl::Duration wait, const std::string& user) {
    return Ensure(Csv(absl::StrCat("https://slow.example/", i)), wait, user).status();
  };
  for (int i = 0; i < 256; ++i) {
    ASSERT_EQ(GetReason(ask(i, absl::ZeroDuration(), "mallory")), kDataBeingFetched) << i;
  }
  const absl::Status full = ask(256, absl::ZeroDuration(), "mallory");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(GetReason(full), "TOO_MANY_FETCHES");
  EXPECT_TRUE(GetRetryDelay(full).has_value());
  EXPECT_EQ(GetReason(ask(255, absl::ZeroDuration(), "mallory")), kDataBeingFetched) << "it waits already";
  EXPECT_TRUE(Ensure(Csv(kTable), kLong, "ann").ok());
  // Also for the fetch of another user.
  EXPECT_EQ(GetReason(ask(300, absl::ZeroDuration(), "ann")), kDataBeingFetched);
  EXPECT_EQ(GetReason(ask(300, absl::ZeroDuration(), "mallory")), "TOO_MANY_FETCHES");
  web_->Hold(false);
  EXPECT_EQ(GetReason(ask(255, kLong, "mallory")), "FETCH_FAILED");
  EXPECT_EQ(GetReason(ask(256, kLong, "mallory")), "FETCH_FAILED") << "there is a place again";
}

TEST_F(FetcherTest, WhatTakesLongIsSaidToBeFetched) {
  web_->Put(kTable, "x");
  web_->Hold(true);
  const absl::Status late = Ensure(Csv(kTable), absl::Milliseconds(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(late));
  EXPECT_EQ(GetReason(late), kDataBeingFetched);
  EXPECT_EQ(GetReasonDetails(late).at("bytes_done"), "0");
  web_->Hold(false);
  EXPECT_TRUE(Ensure(Csv(kTable)).ok()) << "the next one joins it";
  EXPECT_EQ(web_->requests().size(), 1);
}

TEST_F(FetcherTest, AnErrorThatNobodyHeardIsGivenToTheNextOne) {
  web_->Hold(true);
  EXPECT_EQ(GetReason(Ensure(Csv(kTable), absl::ZeroDuration()).status()), kDataBeingFetched);
  web_->Hold(false);
  EXPECT_EQ(GetReason(Ensure(Csv(kTable)).status()), "FETCH_FAILED");
  EXPECT_EQ(web_->requests().size(), 1);
  web_->Put(kTable, "x");
  EXPECT_TRUE(Ensure(Csv(kTable)).ok()) << "it was heard, so it is tried again";
}

TEST_F(FetcherTest, ManyRefusalsOfAUserLeaveLittleBehind) {
  constexpr int kRefusals = 10000, kMost = 256;
  const auto folders = [&] {
    return std::distance(fs::directory_iterator(folder_ + "/cache/partial"), fs::directory_iterator());
  };
  // Returns false if the URL is still being fetched or waits.
  const auto ask = [&](int i) {
    clock_.Advance(absl::Milliseconds(1));
    while (true) {
      const absl::Status status =
          Ensure(Csv(absl::StrCat("http://127.0.0.1/", i)), absl::ZeroDuration(), "mallory").status();
      if (GetReason(status) == "TOO_MANY_FETCHES") {
        absl::SleepFor(absl::Milliseconds(1));
        continue;
      }
      if (GetReason(status) == kDataBeingFetched) return false;
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      return true;
    }
  };
  // Nobody waits for the outcome of this URL.
  for (const char* user : {"ann", "mallory"}) {
    EXPECT_EQ(GetReason(Ensure(Csv(kTable), absl::ZeroDuration(), user).status()), kDataBeingFetched);
  }
  ASSERT_TRUE(web_->AwaitRequests(1));
  for (int i = 0; i < kRefusals; ++i) ask(i);
  EXPECT_LE(folders(), kMost) << "of URLs that are not refused yet";
  const std::string last = absl::StrCat("http://127.0.0.1/", kRefusals - 1);
  EXPECT_TRUE(absl::IsPermissionDenied(Ensure(Csv(last), kLong, "mallory").status()));
  int kept = 0;
  for (int i = kRefusals - 2; i >= kRefusals - 600; --i) kept += ask(i);
  EXPECT_LE(kept, kMost);
  EXPECT_GT(kept, 0) << "the newest outcomes";
  EXPECT_EQ(GetReason(Ensure(Csv(kTable), kLong, "ann").status()), "FETCH_FAILED");
  EXPECT_EQ(web_->CountOf(kTable), 1) << "the outcome was kept for ann";
  // The URL that mallory asked for last is refused last, but for one of another thread.
  const std::string end = absl::StrCat("http://127.0.0.1/", kRefusals - 600);
  EXPECT_TRUE(absl::IsPermissionDenied(Ensure(Csv(end), kLong, "mallory").status()));
  for (const absl::Time begin = absl::Now(); cache_->used_bytes() > 0 && absl::Now() - begin < kLong;) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(cache_->used_bytes(), 0);
  EXPECT_EQ(folders(), 0);
}

TEST_F(FetcherTest, ErrorsNameTheirFields) {
  web_->Put(kTable, "x");
  v1::DatasetSpec spec;
  spec.mutable_idx()->set_train_images(kTable);
  spec.mutable_idx()->set_train_labels("https://example.com/missing?X-Amz-Signature=secret");
  const absl::Status status = Ensure(spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  ASSERT_EQ(violations.size(), 1);
  EXPECT_EQ(violations[0].field, "idx.train_labels");
  EXPECT_THAT(violations[0].description, HasSubstr("https://example.com/missing?..."));
  EXPECT_EQ(status.message().find("secret"), absl::string_view::npos);
  EXPECT_EQ(GetFieldViolations(WithFieldPrefix("spec.dataset", status))[0].field,
            "spec.dataset.idx.train_labels");
}

TEST_F(FetcherTest, AWrongChecksumIsAnError) {
  web_->Put(kTable, "x");
  const absl::Status status = Ensure(Csv(absl::StrCat(kTable, "#sha256=", *Sha256Of("y")))).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(*Sha256Of("x")));
}

TEST_F(FetcherTest, WhatIsNotAllowedIsNotFetched) {
  Start({"s3://allowed"});
  const absl::Status http = Ensure(Csv(kTable)).status();
  EXPECT_TRUE(absl::IsPermissionDenied(http));
  EXPECT_EQ(GetReason(http), "FETCH_NOT_ALLOWED");
  EXPECT_EQ(GetFieldViolations(http)[0].field, "csv.train");
  EXPECT_TRUE(absl::IsPermissionDenied(Ensure(Csv("s3://other-bucket/x")).status()));
  EXPECT_TRUE(web_->requests().empty());
}

TEST_F(FetcherTest, ObjectsOfS3AreFetchedSigned) {
  web_->Put("http://s3.local/bucket/a%20b/c%2B.csv", "x");
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Csv("s3://bucket/a b/c+.csv"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_TRUE(web_->requests()[0].signature.has_value());
  EXPECT_EQ(web_->requests()[0].signature->region, "us-east-1");
  EXPECT_TRUE(web_->requests()[0].any_address) << "the owner named the endpoint";
  EXPECT_EQ(spec->csv().train(), absl::StrCat("s3://bucket/a b/c+.csv#sha256=", *Sha256Of("x")));
}

TEST_F(FetcherTest, FoldersOfS3AreFetchedWhole) {
  PutPage("list-type=2&prefix=set%2F", {"set/", "set/cats/1.png", "set/cats/2.png", "set/cats/.DS_Store"},
          "more");
  PutPage("continuation-token=more&list-type=2&prefix=set%2F",
          {"set/dogs/deep/3.png", "set/dogs/@eaDir/3.png"});
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Folder("s3://bucket/set"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string folder = Local(spec->image_folder().train(), PathKind::kFolder);
  EXPECT_EQ(ContentOrEmpty(folder + "/cats/1.png"), "set/cats/1.png");
  EXPECT_EQ(ContentOrEmpty(folder + "/dogs/deep/3.png"), "set/dogs/deep/3.png");
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator()), 6);
}

TEST_F(FetcherTest, OfAFolderOnlyWhatChangedIsFetchedAgain) {
  PutPage("list-type=2&prefix=set%2F", {"set/a/1", "set/b/22"});
  const std::string before = Ensure(Folder("s3://bucket/set/"))->image_folder().train();
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Ensure(Folder("s3://bucket/set/"))->image_folder().train(), before);
  PutPage("list-type=2&prefix=set%2F", {"set/a/1", "set/b/333"});
  clock_.Advance(absl::Minutes(1));
  const std::string after = Ensure(Folder("s3://bucket/set/"))->image_folder().train();
  EXPECT_NE(after, before);
  EXPECT_EQ(web_->CountOf("http://s3.local/bucket/set/a/1"), 1);
  EXPECT_EQ(ContentOrEmpty(Local(after, PathKind::kFolder) + "/b/333"), "set/b/333");
  EXPECT_FALSE(fs::exists(Local(after, PathKind::kFolder) + "/b/22"));
  EXPECT_TRUE(fs::exists(Local(before, PathKind::kFolder) + "/b/22"));
}

TEST_F(FetcherTest, AFolderMayHaveFilesNamedLikeAnotherFileWithAnEnding) {
  PutPage("list-type=2&prefix=set%2F", {"set/a/1.json", "set/a/1.part"});
  ASSERT_TRUE(Ensure(Folder("s3://bucket/set/")).ok());
  PutPage("list-type=2&prefix=set%2F", {"set/a/1", "set/a/1.json", "set/a/1.part"});
  clock_.Advance(absl::Minutes(1));
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Folder("s3://bucket/set/"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string folder = Local(spec->image_folder().train(), PathKind::kFolder);
  for (const std::string name : {"1", "1.json", "1.part"}) {
    EXPECT_EQ(ContentOrEmpty(folder + "/a/" + name), "set/a/" + name);
  }
}

TEST_F(FetcherTest, FoldersGoOnAfterARestart) {
  PutPage("list-type=2&prefix=set%2F", {"set/a/1", "set/b/22"});
  web_->Befall("http://s3.local/bucket/set/b/22", {.status = 403});
  EXPECT_FALSE(Ensure(Folder("s3://bucket/set/")).ok());
  EXPECT_EQ(web_->CountOf("http://s3.local/bucket/set/a/1"), 1);
  Start();
  PutPage("list-type=2&prefix=set%2F", {"set/a/1", "set/b/22"});
  ASSERT_TRUE(Ensure(Folder("s3://bucket/set/")).ok());
  EXPECT_EQ(web_->CountOf("http://s3.local/bucket/set/a/1"), 0);
  EXPECT_EQ(web_->CountOf("http://s3.local/bucket/set/b/22"), 1);
}

TEST_F(FetcherTest, FoldersThatCannotBeAreRefused) {
  PutPage("list-type=2&prefix=none%2F", {});
  EXPECT_THAT(std::string(Ensure(Folder("s3://bucket/none")).status().message()), HasSubstr("nothing there"));
  PutPage("list-type=2&prefix=up%2F", {"up/../../etc/passwd"});
  EXPECT_THAT(std::string(Ensure(Folder("s3://bucket/up")).status().message()),
              HasSubstr("out of its folder"));
  PutPage("list-type=2&prefix=both%2F", {"both/a", "both/a.txt", "both/a/b"});
  EXPECT_THAT(std::string(Ensure(Folder("s3://bucket/both")).status().message()),
              HasSubstr("cannot have a file and a folder of the same name"));
  EXPECT_THAT(std::string(Ensure(Folder("https://example.com/set/")).status().message()),
              HasSubstr("cannot list"));
  EXPECT_THAT(std::string(Ensure(Csv("s3://bucket/set/")).status().message()), HasSubstr("must name a file"));
}

TEST_F(FetcherTest, AListingWithTooLongTagsIsRefused) {
  // The second and third page name each other as the next.
  const std::string query = "list-type=2&prefix=set%2F";
  std::string objects;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&objects, absl::StrFormat("<Contents><Key>set/%03d</Key><Size>1</Size>", i), "<ETag>",
                    std::string(10000, 'a'), "</ETag></Contents>");
  }
  const auto put = [&](const std::string& page, const std::string& next) {
    web_->Put("http://s3.local/bucket/?" + page + query,
              absl::StrCat("<ListBucketResult>", objects, "<IsTruncated>true</IsTruncated>",
                           "<NextContinuationToken>", next, "</NextContinuationToken></ListBucketResult>"));
  };
  put("", "b");
  put("continuation-token=b&", "c");
  put("continuation-token=c&", "b");
  const absl::Status status = Ensure(Folder("s3://bucket/set")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "image_folder.train");
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 256 MiB together"));
  // A page has 1,000 paths of 3 bytes and tags of 10,000, and 256 MiB are 26.8 such pages.
  EXPECT_EQ(web_->requests().size(), 27);
}

TEST_F(FetcherTest, AHundredShardsSurviveOneFailingRequestInTen) {
  const std::string pattern = "https://example.com/set/{a,b}-{00..49}.tar";
  for (int i = 0; i < 100; ++i) {
    const std::string url = absl::StrFormat("https://example.com/set/%c-%02d.tar", "ab"[i / 50], i % 50);
    web_->Put(url, absl::StrCat("shard ", i, std::string(300, 'x')));
    if (i % 10 == 0)
      web_->Befall(
          url, i % 20 == 0 ? FakeTransport::Mishap{.status = 503} : FakeTransport::Mishap{.cut_after = 100});
  }
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Shards(pattern));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string pinned = spec->webdataset().train();
  EXPECT_THAT(pinned, ::testing::StartsWith(pattern + "#sha256="));
  EXPECT_EQ(web_->requests().size(), 110);
  const std::vector<std::string> shards = LocalShards(pinned);
  ASSERT_EQ(shards.size(), 100);
  EXPECT_EQ(ContentOrEmpty(shards[7]), absl::StrCat("shard 7", std::string(300, 'x')));
  EXPECT_EQ(ContentOrEmpty(shards[90]), absl::StrCat("shard 90", std::string(300, 'x')));
  // A job keeps its shards. The pinned pattern needs no request.
  EXPECT_EQ(Ensure(*spec)->webdataset().train(), pinned);
  EXPECT_EQ(web_->requests().size(), 110);
}

// A folder with such shards is refused. A pattern names them on purpose.
TEST_F(FetcherTest, APatternMayNameShardsOfSeveralParts) {
  const std::string pattern = "https://example.com/set/{train,val}-{0..1}.tar?key=secret";
  for (const char* name : {"train-0", "train-1", "val-0", "val-1"}) {
    web_->Put(absl::StrCat("https://example.com/set/", name, ".tar?key=secret"), name);
  }
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Shards(pattern));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string local = Local(spec->webdataset().train(), PathKind::kShards);
  EXPECT_THAT(local, ::testing::EndsWith("/{train,val}-{0..1}.tar"));
  std::vector<std::string> contents;
  for (const std::string& shard : LocalShards(spec->webdataset().train()))
    contents.push_back(ContentOrEmpty(shard));
  EXPECT_THAT(contents, ElementsAre("train-0", "train-1", "val-0", "val-1"));
}

TEST_F(FetcherTest, OfAPatternOnlyChangedShardsAreTransferredAgain) {
  const std::string pattern = "https://example.com/{0..1}.tar?key=secret";
  web_->Put("https://example.com/0.tar?key=secret", "zero", "\"a\"");
  web_->Put("https://example.com/1.tar?key=secret", "one", "\"b\"");
  const std::string before = Ensure(Shards(pattern))->webdataset().train();
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Ensure(Shards(pattern))->webdataset().train(), before);
  EXPECT_EQ(web_->requests().size(), 4) << "each server is asked again";
  web_->Put("https://example.com/1.tar?key=secret", "uno", "\"c\"");
  clock_.Advance(absl::Minutes(1));
  const std::string after = Ensure(Shards(pattern))->webdataset().train();
  EXPECT_NE(after, before);
  EXPECT_EQ(ContentOrEmpty(LocalShards(after)[0]), "zero");
  EXPECT_EQ(ContentOrEmpty(LocalShards(after)[1]), "uno");
  EXPECT_EQ(ContentOrEmpty(LocalShards(before)[1]), "one");
}

TEST_F(FetcherTest, LargePatternsOfAUserArePlannedOneAfterTheOther) {
  // The paths of one pattern alone reach the limit.
  constexpr int kPatterns = 4, kShards = 100;
  const std::string deep = absl::StrJoin(std::vector<std::string>(4, std::string(249, 'd')), "/");
  static_assert(kShards * 4 * 250 >= kPlanBytes);
  const auto pattern = [&](int i) {
    return Shards(absl::StrCat("https://example.com/{", i, ",", i, "a}/", deep, "/{00..49}.tar"));
  };
  for (int i = 0; i < kPatterns; ++i) {
    for (int shard = 0; shard < kShards; ++shard) {
      web_->Put(
          absl::StrFormat("https://example.com/%d%s/%s/%02d.tar", i, shard < 50 ? "" : "a", deep, shard % 50),
          "x");
    }
  }
  web_->Put(kTable, "x");
  const std::string held = absl::StrCat("https://example.com/0/", deep, "/00.tar");
  web_->Hold(true, held);
  const auto planned_files = [&](int i) {
    const absl::Status status = Ensure(pattern(i), absl::ZeroDuration(), "mallory").status();
    EXPECT_EQ(GetReason(status), kDataBeingFetched) << status;
    return GetReasonDetails(status).at("files_total");
  };
  for (int i = 0; i < kPatterns; ++i) planned_files(i);
  ASSERT_TRUE(web_->AwaitRequests(kShards)) << "mallory's second thread fetches the other shards";
  EXPECT_EQ(planned_files(0), absl::StrCat(kShards));
  for (int i = 1; i < kPatterns; ++i) EXPECT_EQ(planned_files(i), "0") << i;
  // Neither files nor other users wait for the plan.
  EXPECT_TRUE(Ensure(Csv(kTable), kLong, "mallory").ok());
  EXPECT_TRUE(Ensure(pattern(1), kLong, "ann").ok());
  EXPECT_EQ(planned_files(2), "0");
  web_->Hold(false);
  for (int i = 0; i < kPatterns; ++i) {
    const absl::StatusOr<v1::DatasetSpec> spec = Ensure(pattern(i), kLong, "mallory");
    EXPECT_TRUE(spec.ok()) << spec.status();
  }
}

TEST_F(FetcherTest, APatternGoesOnAfterARestart) {
  const std::string pattern = "https://example.com/{0..2}.tar";
  const auto put = [&] {
    for (const char* name : {"0", "1", "2"}) {
      web_->Put(absl::StrCat("https://example.com/", name, ".tar"), name, absl::StrCat("\"", name, "\""));
    }
  };
  put();
  web_->Befall("https://example.com/2.tar", {.status = 403});
  const absl::Status failed = Ensure(Shards(pattern)).status();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(GetFieldViolations(failed)[0].field, "webdataset.train");
  EXPECT_THAT(GetFieldViolations(failed)[0].description, HasSubstr("https://example.com/2.tar"));
  Start();
  put();
  const absl::StatusOr<v1::DatasetSpec> spec = Ensure(Shards(pattern));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(ContentOrEmpty(LocalShards(spec->webdataset().train())[0]), "0");
  const std::vector<HttpRequest> requests = web_->requests();
  EXPECT_EQ(std::count_if(requests.begin(), requests.end(),
                          [](const HttpRequest& request) {
                            return request.url == "https://example.com/0.tar" &&
                                   std::count(request.headers.begin(), request.headers.end(),
                                              "If-None-Match: \"0\"") == 1;
                          }),
            1)
      << "the server confirms a shard that was already fetched";
}

TEST_F(FetcherTest, ShardsOfS3AreAFileAFolderOrAPattern) {
  for (const char* key : {"set/0.tar", "set/1.tar"}) {
    web_->Put(absl::StrCat("http://s3.local/bucket/", key), key);
  }
  const absl::StatusOr<v1::DatasetSpec> pattern = Ensure(Shards("s3://bucket/set/{0..1}.tar"));
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(ContentOrEmpty(LocalShards(pattern->webdataset().train())[1]), "set/1.tar");
  PutPage("list-type=2&prefix=folder", {"folder/0.tar", "folder/README.md", "folder/b/1.tar"});
  const absl::StatusOr<v1::DatasetSpec> folder = Ensure(Shards("s3://bucket/folder"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string local = Local(folder->webdataset().train(), PathKind::kShards);
  EXPECT_EQ(ContentOrEmpty(local + "/b/1.tar"), "folder/b/1.tar");
  EXPECT_FALSE(fs::exists(local + "/README.md"));
  PutPage("list-type=2&prefix=one.tar", {"one.tar"});
  const absl::StatusOr<v1::DatasetSpec> file = Ensure(Shards("s3://bucket/one.tar"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(fs::is_regular_file(Local(file->webdataset().train(), PathKind::kShards)));
}

TEST_F(FetcherTest, PatternsThatCannotBeAreRefused) {
  const auto refusal = [&](const std::string& pattern) {
    const absl::Status status = Ensure(Shards(pattern)).status();
    EXPECT_EQ(GetFieldViolations(status).size(), 1) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("https://example.com/{0..1.tar"), HasSubstr("'{' without a '}'"));
  EXPECT_THAT(refusal("https://example.com/{0..100000}.tar"), HasSubstr("more than 100000 shards"));
  EXPECT_THAT(refusal("https://example.com/{0..1}?a=secret"),
              ::testing::AllOf(HasSubstr("does not end in .tar"), ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(refusal("https://example.com/{1..0}.tar?a=secret"),
              ::testing::AllOf(HasSubstr("swap the numbers"), ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(refusal("https://example.com/{0..1}.tar.gz"), HasSubstr("does not end in .tar"));
  EXPECT_THAT(refusal("https://example.com/{a,../b}.tar"), HasSubstr("out of its folder"));
  EXPECT_THAT(refusal("https://example.com/{a,.b}.tar"), HasSubstr("is hidden"));
  EXPECT_THAT(refusal("https://example.com/{0..1}{2..3"), HasSubstr("without a"));
  EXPECT_THAT(refusal("s3://{bucket,other}/0.tar"), HasSubstr("bucket"));
  // More than the cache holds.
  for (const char* name : {"0", "1", "2"}) {
    web_->Put(absl::StrCat("https://example.com/", name, ".tar"), std::string(kCacheBytes / 3, 'x'));
  }
  const absl::Status full = Ensure(Shards("https://example.com/{0..2}.tar")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(GetReason(full), "CACHE_FULL");
}

TEST_F(FetcherTest, CifarMayBeAFileOrAFolderOfS3) {
  v1::DatasetSpec spec;
  spec.mutable_cifar()->set_path("s3://bucket/cifar");
  PutPage("list-type=2&prefix=cifar", {"cifar", "cifar/test.bin"});
  ASSERT_TRUE(Ensure(spec).ok());
  EXPECT_TRUE(fs::is_regular_file(Local(Ensure(spec)->cifar().path(), PathKind::kFileOrFolder)));
  spec.mutable_cifar()->set_path("s3://bucket/cifar2");
  PutPage("list-type=2&prefix=cifar2", {"cifar2/test.bin", "cifar2x"});
  const absl::StatusOr<v1::DatasetSpec> folder = Ensure(spec);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(fs::is_directory(Local(folder->cifar().path(), PathKind::kFileOrFolder)));
}

TEST_F(FetcherTest, RefusalsOfS3SayWhatToDo) {
  const std::string url = "http://s3.local/bucket/x";
  const auto refusal = [&](int status, const std::string& code) {
    web_->Befall(url, {.status = status, .body = "<Error><Code>" + code + "</Code></Error>"});
    return std::string(Ensure(Csv("s3://bucket/x")).status().message());
  };
  EXPECT_THAT(refusal(403, "SignatureDoesNotMatch"), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(refusal(403, "InvalidAccessKeyId"), HasSubstr("AWS_ACCESS_KEY_ID"));
  EXPECT_THAT(refusal(403, "AccessDenied"), HasSubstr("s3:GetObject"));
  EXPECT_THAT(refusal(404, "NoSuchBucket"), HasSubstr("no such bucket"));
  EXPECT_THAT(refusal(404, "NoSuchKey"), HasSubstr("no such object"));
}

TEST_F(FetcherTest, WhatHasNoRoomIsNotFetched) {
  web_->Put(kTable, std::string(kCacheBytes - kCacheBlockBytes + 1, 'x'));
  const absl::Status status = Ensure(Csv(kTable)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(GetReason(status), "CACHE_FULL");
  EXPECT_EQ(GetFieldViolations(status)[0].field, "csv.train");
}

TEST_F(FetcherTest, WhatAFolderBringsBeyondItsListingNeedsRoom) {
  PutPage("list-type=2&prefix=set%2F", {"set/a/1", "set/b/22"});
  web_->Put("http://s3.local/bucket/set/b/22", std::string(2 * kCacheBytes, 'x'), "\"8\"");
  const absl::Status status = Ensure(Folder("s3://bucket/set/")).status();
  EXPECT_EQ(GetReason(status), "CACHE_FULL") << status;
  web_->Put("http://s3.local/bucket/set/b/22", std::string(50000, 'x'), "\"8\"");
  EXPECT_TRUE(Ensure(Folder("s3://bucket/set/")).ok()) << "it has become larger since, and there is room";
}

TEST_F(FetcherTest, AListingOfMoreThanThereIsHasNoRoom) {
  const std::string object =
      absl::StrCat("<Contents><Key>set/KEY</Key><Size>", std::numeric_limits<int64_t>::max(),
                   "</Size><ETag>1</ETag></Contents>");
  web_->Put("http://s3.local/bucket/?list-type=2&prefix=set%2F",
            absl::StrCat("<ListBucketResult>", absl::StrReplaceAll(object, {{"KEY", "a"}}),
                         absl::StrReplaceAll(object, {{"KEY", "b"}}), "</ListBucketResult>"));
  EXPECT_EQ(GetReason(Ensure(Folder("s3://bucket/set/")).status()), "CACHE_FULL");
}

TEST_F(FetcherTest, EmptyFilesAndFoldersTakeRoom) {
  std::string objects;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&objects, "<Contents><Key>set/", i, "/a</Key><Size>0</Size><ETag>1</ETag></Contents>");
  }
  web_->Put("http://s3.local/bucket/?list-type=2&prefix=set%2F",
            absl::StrCat("<ListBucketResult>", objects, "</ListBucketResult>"));
  const absl::Status status = Ensure(Folder("s3://bucket/set/")).status();
  EXPECT_EQ(GetReason(status), "CACHE_FULL") << status;
  // 1,000 files and 1,000 folders.
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs 8.2 MB"));
  std::string deep = "deep/";
  for (int i = 0; i < 31; ++i) deep += "a/";
  PutPage("list-type=2&prefix=deep%2F", {deep + "b"});
  EXPECT_TRUE(Ensure(Folder("s3://bucket/deep")).ok());
  PutPage("list-type=2&prefix=deep%2F", {deep + "a/b"});
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(std::string(Ensure(Folder("s3://bucket/deep")).status().message()),
              HasSubstr("more than 31 folders deep"));
}

TEST_F(FetcherTest, PublicSetsAreVerified) {
  EXPECT_TRUE(absl::IsNotFound(FetchPublicSet("imagenet")));
  for (const PublicFile& file : FindPublicSet("mnist")->files) {
    web_->Put("http://mirror.local/sets/mnist/" + file.name, "not MNIST");
  }
  const absl::Status status = FetchPublicSet("mnist");
  EXPECT_FALSE(status.ok());
  ASSERT_FALSE(GetFieldViolations(status).empty());
  EXPECT_EQ(GetFieldViolations(status)[0].field, "name");
  // Whichever of the four failed first.
  EXPECT_THAT(
      GetFieldViolations(status)[0].description,
      ::testing::ContainsRegex(
          "^has the file (train|t10k)-(images|labels)-idx[13]-ubyte.gz, which is http://mirror.local/"));
  EXPECT_THAT(GetFieldViolations(status)[0].description, HasSubstr(*Sha256Of("not MNIST")));
  EXPECT_THAT(GetFieldViolations(status)[0].description, HasSubstr("storage.googleapis.com"));
  EXPECT_FALSE(fs::exists(folder_ + "/public/mnist"));
  const std::vector<HttpRequest> requests = web_->requests();
  EXPECT_EQ(requests[0].url.find("http://mirror.local/sets/mnist/"), 0) << "the mirror is asked first";
  EXPECT_TRUE(requests[0].any_address) << "the owner named it";
}

TEST_F(FetcherTest, StoppingEndsTheWait) {
  web_->Hold(true);
  SpecAnswer answer;
  fetcher_->Ensure(Csv(kTable), "ann", kLong,
                   [&](absl::StatusOr<v1::DatasetSpec> spec) { answer(std::move(spec)); });
  fetcher_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(answer.Get().status()));
  EXPECT_TRUE(absl::IsUnavailable(Ensure(Csv("https://example.com/other")).status()));
}

TEST_F(FetcherTest, NeededIsWhatIsPinned) {
  Cache::Needed needed;
  Fetcher::AddNeeded(Csv(kTable), &needed);
  EXPECT_TRUE(needed.empty());
  Fetcher::AddNeeded(Csv(absl::StrCat(kTable, "#sha256=", *Sha256Of("x"))), &needed);
  EXPECT_EQ(needed, (Cache::Needed{{*Sha256Of(kTable), *Sha256Of("x")}}));
}

}  // namespace
}  // namespace tandem
