#ifndef TANDEM_SERVER_FETCH_S3_H_
#define TANDEM_SERVER_FETCH_S3_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "server/fetch/origin.h"
#include "server/fetch/s3_config.h"

namespace tandem {

// An object in a listing.
struct S3Object {
  std::string key;
  int64_t size_bytes = 0;
  std::string etag;
};

// A bucket of S3 or of a compatible server. Thread-safe.
class S3Bucket {
 public:
  // `transport` must outlive this object.
  S3Bucket(std::string bucket, S3Config config, Transport* transport);

  // Gets an object. Result as Origin::Get.
  absl::StatusOr<HttpResponse> GetObject(const std::string& key, const std::vector<std::string>& headers,
                                         HttpSink& sink);

  // Returns a page of the objects whose keys begin with `prefix`, sorted by key. `token` is the previous
  // page's next_token; empty for the first page. Errors as Origin::Get.
  struct Page {
    std::vector<S3Object> objects;
    std::string next_token;  // Empty: the last page.
  };
  absl::StatusOr<Page> List(const std::string& prefix, const std::string& token);

  const std::string& name() const { return bucket_; }

 private:
  // Returns the URL of `target`, a key as a path, optionally with a query.
  std::string UrlOf(const std::string& target, const std::string& region) const;
  absl::StatusOr<HttpResponse> Get(const std::string& target, const std::string& shown,
                                   const std::vector<std::string>& headers, HttpSink& sink);
  absl::Status Explain(const HttpResponse& response, const std::string& shown) const;

  const std::string bucket_;
  const S3Config config_;
  Transport* const transport_;
  Mutex mutex_;
  // The configured region, or the region that a server redirected to.
  std::string region_ ABSL_GUARDED_BY(mutex_);
};

// An object in a bucket.
class S3Origin : public Origin {
 public:
  S3Origin(std::shared_ptr<S3Bucket> bucket, std::string key)
      : bucket_(std::move(bucket)),
        key_(std::move(key)),
        shown_(absl::StrCat("s3://", bucket_->name(), "/", key_)) {}
  absl::StatusOr<HttpResponse> Get(const std::vector<std::string>& headers, HttpSink& sink) override {
    return bucket_->GetObject(key_, headers, sink);
  }
  const std::string& shown() const override { return shown_; }
  // S3 does not support If-Range.
  const char* resume_header() const override { return "If-Match"; }

 private:
  const std::shared_ptr<S3Bucket> bucket_;
  const std::string key_;
  const std::string shown_;
};

// Parses ListObjectsV2's answer. UNAVAILABLE if the text is no such answer.
absl::StatusOr<S3Bucket::Page> ParseS3Page(const std::string& xml);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_S3_H_
