// Folders of S3 and patterns of shards: URLs that name many files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "proto/data_folder/shards.h"
#include "server/fetch/fake_transport.h"
#include "server/fetch/fetcher_fixture.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace tandem
