#include "server/fetch/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/retry_delay.h"
#include "engine/base/sha256.h"
#include "server/fetch/data_url.h"
#include "server/fetch/fake_transport.h"
#include "server/fetch/fetcher_fixture.h"
#include "server/fetch/public_sets.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kWeights[] = "https://example.com/model.safetensors";

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

TEST_F(FetcherTest, NeededAreTheDataAndTheWeightsOfAJob) {
  v1::JobSpec spec;
  *spec.mutable_dataset() = Csv(absl::StrCat(kTable, "#sha256=", *Sha256Of("x")));
  spec.mutable_initial_weights()->set_file(absl::StrCat(kWeights, "#sha256=", *Sha256Of("y")));
  Cache::Needed needed;
  Fetcher::AddNeeded(spec, &needed);
  EXPECT_EQ(needed,
            (Cache::Needed{{*Sha256Of(kTable), *Sha256Of("x")}, {*Sha256Of(kWeights), *Sha256Of("y")}}));
  needed.clear();
  spec.mutable_initial_weights()->set_file("model.safetensors");
  Fetcher::AddNeeded(spec, &needed);
  EXPECT_EQ(needed.size(), 1);
}

TEST_F(FetcherTest, UrlsOfSeveralFieldsAreFetchedTogether) {
  web_->Put(kTable, "x");
  web_->Put(kWeights, "y");
  const auto ensure = [&](const std::string& weights) {
    auto answer = std::make_shared<Answer<absl::StatusOr<std::vector<std::string>>>>();
    fetcher_->EnsureUrls({{"spec.dataset.csv.train", kTable, PathKind::kFile},
                          {"spec.initial_weights.file", weights, PathKind::kFile}},
                         "ann", kLong, [answer](absl::StatusOr<std::vector<std::string>> urls) {
                           (*answer)(std::move(urls));
                         });
    return answer->Get();
  };
  const absl::StatusOr<std::vector<std::string>> pinned = ensure(kWeights);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_THAT(*pinned, ::testing::ElementsAre(absl::StrCat(kTable, "#sha256=", *Sha256Of("x")),
                                              absl::StrCat(kWeights, "#sha256=", *Sha256Of("y"))));
  EXPECT_EQ(ContentOrEmpty(Local((*pinned)[1])), "y");
  // Braces are part of a file's name, and a folder is no file.
  for (const char* wrong : {"https://example.com/part-{0..1}", "s3://bucket/", "https://a b/c"}) {
    const absl::Status refused = ensure(wrong).status();
    EXPECT_EQ(GetReason(refused), "FETCH_FAILED") << wrong;
    ASSERT_EQ(GetFieldViolations(refused).size(), 1) << wrong;
    EXPECT_EQ(GetFieldViolations(refused)[0].field, "spec.initial_weights.file") << wrong;
  }
}

TEST_F(FetcherTest, AUrlIsShownWithoutItsQueryAndDigest) {
  EXPECT_EQ(ShownUrl("https://a/b"), "https://a/b");
  EXPECT_EQ(ShownUrl("https://a/b#sha256=0"), "https://a/b");
  EXPECT_EQ(ShownUrl("https://a/b?secret#sha256=0"), "https://a/b?...");
}

}  // namespace
}  // namespace tandem
