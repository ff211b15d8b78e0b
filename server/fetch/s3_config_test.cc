#include "server/fetch/s3_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "server/fetch/s3.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class S3ConfigTest : public ::testing::Test {
 protected:
  S3ConfigTest() {
    variables_["AWS_SHARED_CREDENTIALS_FILE"] = temporary_.path() + "/credentials";
    variables_["AWS_CONFIG_FILE"] = temporary_.path() + "/config";
  }
  void Write(const std::string& variable, const std::string& text) {
    std::ofstream(variables_[variable]) << text;
  }
  absl::StatusOr<S3Config> Read() {
    return ReadS3Config([this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    });
  }

  TemporaryFolder temporary_;
  std::map<std::string, std::string> variables_;
};

TEST_F(S3ConfigTest, WithoutAnythingRequestsAreNotSigned) {
  const absl::StatusOr<S3Config> config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->access_key, "");
  EXPECT_EQ(config->region, "us-east-1");
  EXPECT_EQ(config->endpoint, "");
}

TEST_F(S3ConfigTest, TheEnvironmentCountsMoreThanFiles) {
  Write("AWS_SHARED_CREDENTIALS_FILE",
        "[default]\naws_access_key_id = file\naws_secret_access_key = s\naws_session_token = old\n");
  Write("AWS_CONFIG_FILE", "[default]\nregion = eu-central-1\nendpoint_url = http://files:1/\n");
  EXPECT_EQ(Read()->access_key, "file");
  EXPECT_EQ(Read()->session_token, "old");
  EXPECT_EQ(Read()->region, "eu-central-1");
  EXPECT_EQ(Read()->endpoint, "http://files:1");
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_DEFAULT_REGION"] = "us-west-1";
  variables_["AWS_ENDPOINT_URL"] = "https://all";
  EXPECT_EQ(Read()->access_key, "key");
  EXPECT_EQ(Read()->secret_key, "secret");
  EXPECT_EQ(Read()->session_token, "") << "that of the file is not the key's";
  EXPECT_EQ(Read()->region, "us-west-1");
  EXPECT_EQ(Read()->endpoint, "https://all");
  variables_["AWS_REGION"] = "us-west-2";
  variables_["AWS_ENDPOINT_URL_S3"] = "https://s3";
  EXPECT_EQ(Read()->region, "us-west-2");
  EXPECT_EQ(Read()->endpoint, "https://s3");
}

TEST_F(S3ConfigTest, Profiles) {
  Write("AWS_SHARED_CREDENTIALS_FILE",
        "# mine\n[default]\naws_access_key_id=d\naws_secret_access_key=d\n\n[work]\naws_access_key_id = w\n"
        "aws_secret_access_key = a+b/c=\n");
  Write("AWS_CONFIG_FILE", "[profile work]\ns3 =\n  region = not-this\nregion = eu-west-3\n");
  variables_["AWS_PROFILE"] = "work";
  EXPECT_EQ(Read()->access_key, "w");
  EXPECT_EQ(Read()->secret_key, "a+b/c=");
  EXPECT_EQ(Read()->region, "eu-west-3");
  variables_["AWS_PROFILE"] = "nobody";
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("'nobody'"));
}

TEST_F(S3ConfigTest, HalvesAreRefused) {
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_ENDPOINT_URL"] = "localhost:9000";
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("localhost:9000"));
}

TEST(S3PageTest, ReadsListings) {
  const auto page = ParseS3Page(
      "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</"
      "NextContinuationToken><Contents>"
      "<Key>a &amp; b</Key><Size>5000000000</Size><ETag>&quot;x&quot;</ETag></Contents></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->objects.size(), 1);
  EXPECT_EQ(page->objects[0].key, "a & b");
  EXPECT_EQ(page->objects[0].size_bytes, 5000000000);
  EXPECT_EQ(page->objects[0].etag, "\"x\"");
  EXPECT_EQ(page->next_token, "t");
}

TEST(S3PageTest, WhatIsNoListingIsAnError) {
  for (const char* xml :
       {"", "<html>", "<html/>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"}) {
    EXPECT_TRUE(absl::IsUnavailable(ParseS3Page(xml).status())) << xml;
  }
}

}  // namespace
}  // namespace tandem
