#include "server/fetch/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/sha256.h"
#include "server/fetch/fake_transport.h"
#include "server/fetch/http_origin.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr char kUrl[] = "https://example.com/data.bin";

std::string Content(size_t size) {
  std::string content;
  for (size_t i = 0; i < size; ++i) content.push_back(static_cast<char>(i * 7 + i / 251));
  return content;
}

class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() {
    request_.path = temporary_.path() + "/data.bin";
    context_.env = Env::Real();
    context_.reserve = [this](int64_t bytes) {
      reserved_ += bytes;
      return reserved_ > room_ ? absl::ResourceExhaustedError("full") : absl::OkStatus();
    };
    context_.sleep = [this](absl::Duration duration) {
      waits_.push_back(duration);
      return true;
    };
    context_.progress = [this](int64_t done, int64_t total) {
      done_ = done;
      total_ = total;
    };
  }

  absl::StatusOr<std::optional<internal::v1::CacheFile>> Run() {
    HttpOrigin origin(*ParseDataUrl(kUrl), &policy_, &web_);
    return Download(origin, request_, retry_, context_);
  }
  std::string OnDisk() {
    std::ifstream file(request_.path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  const FetchPolicy policy_ = *FetchPolicy::Parse({"public"});
  FakeTransport web_;
  TemporaryFolder temporary_;
  DownloadRequest request_;
  RetryPolicy retry_{.attempts = 3, .first_wait = absl::Milliseconds(100)};
  DownloadContext context_;
  std::vector<absl::Duration> waits_;
  int64_t reserved_ = 0;
  int64_t room_ = 1 << 30;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

TEST_F(DownloadTest, BringsAFile) {
  web_.Put(kUrl, Content(10000));
  const auto file = Run();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size_bytes(), 10000);
  EXPECT_EQ((*file)->sha256(), *Sha256Of(Content(10000)));
  EXPECT_EQ((*file)->etag(), "\"1\"");
  EXPECT_EQ(OnDisk(), Content(10000));
  EXPECT_EQ(done_, 10000);
  EXPECT_EQ(total_, 10000);
  EXPECT_EQ(reserved_, 10000);
  EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/.data.bin.part"));
  EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/.data.bin.json"));
}

TEST_F(DownloadTest, TagsOfMoreThan1024BytesAreIgnored) {
  for (const size_t size : {1024, 1025}) {
    const std::string tag(size, 't');
    web_.Put(kUrl, Content(10), tag);
    const auto file = Run();
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->etag(), size == 1024 ? tag : "");
    EXPECT_EQ(OnDisk(), Content(10));
  }
}

TEST_F(DownloadTest, BringsAnEmptyFile) {
  web_.Put(kUrl, "");
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(std::filesystem::exists(request_.path));
}

TEST_F(DownloadTest, GoesOnWhereItWasCut) {
  web_.Put(kUrl, Content(10000));
  web_.Befall(kUrl, {.cut_after = 4000});
  web_.Befall(kUrl, {.cut_after = 3000});
  const auto file = Run();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(OnDisk(), Content(10000));
  ASSERT_EQ(web_.requests().size(), 3);
  EXPECT_THAT(web_.requests()[2].headers, ::testing::ElementsAre("Range: bytes=7000-", "If-Range: \"1\""));
}

TEST_F(DownloadTest, ProgressMakesUpForTries) {
  web_.Put(kUrl, Content(1000000));
  for (int i = 0; i < 9; ++i) web_.Befall(kUrl, {.cut_after = 100000});
  ASSERT_TRUE(Run().ok()) << "three tries, but each brought something";
}

TEST_F(DownloadTest, ATrickleIsNoProgress) {
  web_.Put(kUrl, Content(1000000));
  for (int i = 0; i < 100; ++i) web_.Befall(kUrl, {.cut_after = 1000});
  EXPECT_FALSE(Run().ok()) << "it would keep its thread for a thousand tries, and their waits";
  EXPECT_EQ(web_.requests().size(), 3);
}

TEST_F(DownloadTest, TheSameBytesOverAndOverAreNoProgress) {
  web_.Put(kUrl, Content(10000), "");
  for (int i = 0; i < 20; ++i) web_.Befall(kUrl, {.cut_after = 4000});
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(web_.requests().size(), 3);
}

TEST_F(DownloadTest, GoesOnAfterARestart) {
  web_.Put(kUrl, Content(10000));
  for (int i = 0; i < 4; ++i) web_.Befall(kUrl, {.cut_after = i == 0 ? 6000 : 0});
  const auto failed = Run();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("the next try continues there"));
  const auto file = Run();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(web_.requests().back().headers.front(), "Range: bytes=6000-");
  EXPECT_EQ((*file)->sha256(), *Sha256Of(Content(10000)));
}

TEST_F(DownloadTest, BeginsAnewWhereTheFileChanged) {
  web_.Put(kUrl, Content(10000), "\"old\"");
  web_.Befall(kUrl, {.cut_after = 4000});
  context_.sleep = [this](absl::Duration) {
    web_.Put(kUrl, "entirely new", "\"new\"");
    return true;
  };
  const auto file = Run();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(OnDisk(), "entirely new");
  EXPECT_EQ((*file)->etag(), "\"new\"");
}

TEST_F(DownloadTest, BeginsAnewWhereTheServerKnowsNoRanges) {
  web_.Put(kUrl, Content(10000));
  web_.Befall(kUrl, {.cut_after = 4000});
  web_.Befall(kUrl, {.no_ranges = true});
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(OnDisk(), Content(10000));
}

TEST_F(DownloadTest, WithoutATagNothingIsContinued) {
  web_.Put(kUrl, Content(10000), "");
  web_.Befall(kUrl, {.cut_after = 4000});
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(web_.requests().back().headers.empty());
  EXPECT_EQ(OnDisk(), Content(10000));
}

TEST_F(DownloadTest, APartThatWasTouchedIsFoundOutByTheChecksum) {
  web_.Put(kUrl, Content(10000));
  request_.sha256 = *Sha256Of(Content(10000));
  for (int i = 0; i < 4; ++i) web_.Befall(kUrl, {.cut_after = i == 0 ? 6000 : 0});
  ASSERT_FALSE(Run().ok());
  std::fstream part(temporary_.path() + "/.data.bin.part", std::ios::in | std::ios::out | std::ios::binary);
  part.seekp(100);
  part.put('!');
  part.close();
  const auto file = Run();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(OnDisk(), Content(10000));
}

TEST_F(DownloadTest, WrongChecksumIsAnError) {
  web_.Put(kUrl, Content(100));
  request_.sha256 = std::string(64, '0');
  const auto file = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(*Sha256Of(Content(100))));
  EXPECT_FALSE(std::filesystem::exists(request_.path));
  EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/.data.bin.part"));
  EXPECT_EQ(web_.requests().size(), 1) << "it would not be another one";
}

TEST_F(DownloadTest, WhatCannotSucceedIsNotTriedAgain) {
  for (const int status : {400, 401, 403, 404, 410, 451}) {
    web_.Befall(kUrl, {.status = status});
    const auto file = Run();
    EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << status;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(kUrl));
  }
  EXPECT_EQ(web_.requests().size(), 6);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(DownloadTest, ServersMayAskForPatience) {
  web_.Put(kUrl, "x");
  web_.Befall(kUrl, {.status = 503, .headers = {{"retry-after", "7"}}});
  web_.Befall(kUrl, {.status = 429});
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(waits_.size(), 2);
  EXPECT_EQ(waits_[0], absl::Seconds(7));
  EXPECT_GE(waits_[1], absl::Milliseconds(100));
  EXPECT_LE(waits_[1], absl::Milliseconds(200));
}

TEST_F(DownloadTest, GivesUp) {
  for (int i = 0; i < 3; ++i) web_.Befall(kUrl, {.error = absl::UnavailableError("nobody there")});
  const auto file = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("3 tries: nobody there"));
}

TEST_F(DownloadTest, RoomIsAskedForBeforeAnythingComes) {
  web_.Put(kUrl, Content(10000));
  room_ = 9999;
  EXPECT_TRUE(absl::IsResourceExhausted(Run().status()));
  EXPECT_EQ(done_, 0);
  EXPECT_EQ(web_.requests().size(), 1);
}

TEST_F(DownloadTest, WithoutALengthItGoesToTheEnd) {
  web_.Put(kUrl, Content(10000));
  web_.Befall(kUrl, {.no_length = true});
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(OnDisk(), Content(10000));
}

TEST_F(DownloadTest, AKnownVersionIsNotFetchedAgain) {
  web_.Put(kUrl, Content(100));
  internal::v1::CacheFile known;
  known.set_etag("\"1\"");
  request_.known = &known;
  const auto file = Run();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->has_value());
  web_.Put(kUrl, Content(200), "\"2\"");
  EXPECT_EQ((*Run())->size_bytes(), 200);
}

TEST_F(DownloadTest, RedirectionsAreFollowedWithinThePolicy) {
  web_.Put("https://cdn.example.com/x", "moved");
  web_.Befall(kUrl, {.status = 302, .redirect = "https://cdn.example.com/x"});
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(OnDisk(), "moved");

  web_.Befall(kUrl, {.status = 302, .redirect = "https://169.254.169.254/latest/meta-data"});
  EXPECT_TRUE(absl::IsPermissionDenied(Run().status()));
  web_.Befall(kUrl, {.status = 302, .redirect = "file:///etc/passwd"});
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("redirects to neither http nor https"));
  web_.Befall(kUrl, {.status = 302, .redirect = "http://example.com/data.bin"});
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("from https to"));
  for (int i = 0; i < 6; ++i) web_.Befall(kUrl, {.status = 301, .redirect = kUrl});
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("more than 5 times"));
}

TEST_F(DownloadTest, EndsWhenTheDaemonStops) {
  web_.Befall(kUrl, {.status = 503});
  context_.sleep = [](absl::Duration) { return false; };
  EXPECT_TRUE(absl::IsCancelled(Run().status()));
}

}  // namespace
}  // namespace tandem
