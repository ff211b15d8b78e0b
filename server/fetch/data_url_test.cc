#include "server/fetch/data_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigest(64, 'a');

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<DataUrl> url = ParseDataUrl(text);
  return url.ok() ? "" : std::string(url.status().message());
}

TEST(DataUrlTest, HttpHasHostAndPort) {
  const absl::StatusOr<DataUrl> url =
      ParseDataUrl("https://Data.Example.com/set/train.gz?v=2#sha256=" + kDigest);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->host, "data.example.com");
  EXPECT_EQ(url->port, 443);
  EXPECT_EQ(url->sha256, kDigest);
  EXPECT_THAT(url->location, Not(HasSubstr("#")));
  EXPECT_THAT(url->shown, Not(HasSubstr("v=2"))) << "a query may hold a signature";
  EXPECT_EQ(FileNameOf(*url), "train.gz");
}

TEST(DataUrlTest, AddressesAndTrailingDots) {
  EXPECT_EQ(ParseDataUrl("http://[::1]:8080/x")->host, "::1");
  EXPECT_EQ(ParseDataUrl("http://[::1]:8080/x")->port, 8080);
  EXPECT_EQ(ParseDataUrl("http://localhost./x")->host, "localhost");
}

TEST(DataUrlTest, S3HasBucketAndKey) {
  const absl::StatusOr<DataUrl> url = ParseDataUrl("s3://my-bucket/a folder/with #1?.csv#sha256=" + kDigest);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_TRUE(url->is_s3());
  EXPECT_EQ(url->host, "my-bucket");
  EXPECT_EQ(url->key, "a folder/with #1?.csv");
  EXPECT_EQ(url->sha256, kDigest);
  EXPECT_EQ(FileNameOf(*url), "with__1_.csv");
  EXPECT_EQ(ParseDataUrl("s3://my-bucket")->key, "");
}

TEST(DataUrlTest, PinnedUrlsAreReadAgain) {
  for (const std::string text : {"https://example.com/a?b=c", "s3://bucket/key"}) {
    const absl::StatusOr<DataUrl> url = ParseDataUrl(text);
    ASSERT_TRUE(url.ok());
    const absl::StatusOr<DataUrl> again = ParseDataUrl(Pin(*url, kDigest));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->location, url->location);
    EXPECT_EQ(again->sha256, kDigest);
  }
}

TEST(DataUrlTest, OtherSchemesAreRefused) {
  for (const std::string text : {"file:///etc/passwd", "ftp://example.com/x", "gopher://example.com/",
                                 "scp://h/x", "dict://127.0.0.1:11211/stats", "FILE:///etc/passwd"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("fetches only from https, http and s3")) << text;
  }
}

TEST(DataUrlTest, WhatIsNoUrlIsRefused) {
  EXPECT_THAT(ErrorOf("https://user:secret@example.com/x"), HasSubstr("password"));
  EXPECT_THAT(ErrorOf("https://user:secret@example.com/x"), Not(HasSubstr("secret")));
  EXPECT_THAT(ErrorOf("https://example.com/x#part"), HasSubstr("fragment"));
  EXPECT_THAT(ErrorOf("https://example.com/x#sha256=12"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(ErrorOf("https://"), HasSubstr("not a URL"));
  EXPECT_THAT(ErrorOf("https://example.com/a b"), HasSubstr("%20"));
  EXPECT_THAT(ErrorOf("https://example.com/a\r\nHost: b"), HasSubstr("control characters"));
  EXPECT_THAT(ErrorOf("s3://B/key"), HasSubstr("cannot be a bucket's name"));
  EXPECT_THAT(ErrorOf("s3://bucket@evil.example/key"), HasSubstr("cannot be a bucket's name"));
  EXPECT_THAT(ErrorOf("https://example.com/" + std::string(5000, 'a')), HasSubstr("4096"));
}

TEST(DataUrlTest, FileNamesAreHarmless) {
  EXPECT_EQ(FileNameOf(*ParseDataUrl("https://example.com/")), "data");
  EXPECT_EQ(FileNameOf(*ParseDataUrl("https://example.com/.hidden")), "data");
  EXPECT_EQ(FileNameOf(*ParseDataUrl("s3://bucket/a/..")), "data");
}

}  // namespace
}  // namespace tandem
