#ifndef TANDEM_SERVER_FETCH_FETCHER_FIXTURE_H_
#define TANDEM_SERVER_FETCH_FETCHER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "proto/data_folder/shards.h"
#include "server/fetch/cache.h"
#include "server/fetch/fake_transport.h"
#include "server/fetch/fetch_policy.h"
#include "server/fetch/fetcher.h"
#include "server/store/temporary_folder.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

inline constexpr absl::Duration kLong = absl::Seconds(60);
// Room for the content and the blocks of each test's files.
inline constexpr int64_t kCacheBytes = 4000000;
// Of the files of a user's plans.
inline constexpr int64_t kPlanBytes = 100000;
inline constexpr char kTable[] = "https://example.com/table.csv";

inline v1::DatasetSpec Csv(const std::string& train) {
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(train);
  return spec;
}

inline v1::DatasetSpec Folder(const std::string& train) {
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(train);
  return spec;
}

inline v1::DatasetSpec Shards(const std::string& train) {
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

// A fetcher with a simulated network and clock, S3 credentials, and a folder of its own.
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

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCHER_FIXTURE_H_
