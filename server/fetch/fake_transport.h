#ifndef TANDEM_SERVER_FETCH_FAKE_TRANSPORT_H_
#define TANDEM_SERVER_FETCH_FAKE_TRANSPORT_H_

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/fetch/transport.h"

namespace tandem {

// A fake web for tests: files by URL, and mishaps, each for one request. Supports ranges, If-Range, If-Match
// and If-None-Match. Thread-safe.
class FakeTransport : public Transport {
 public:
  struct File {
    std::string content;
    std::string etag;
  };
  // Replaces the response to one request.
  struct Mishap {
    int status = 0;                                   // Not 0: this status, without content.
    std::map<std::string, std::string> headers = {};  // The headers of `status`.
    std::string redirect = {};
    std::string body = {};
    int cut_after = -1;       // Not negative: the connection breaks after this many bytes.
    bool no_length = false;   // The server does not send the file's length.
    bool no_ranges = false;   // The server ignores ranges and sends the whole file.
    absl::Status error = {};  // Not OK: the transport's error.
  };

  void Put(const std::string& url, const std::string& content, const std::string& etag = "\"1\"") {
    MutexLock lock(&mutex_);
    files_[url] = {content, etag};
  }
  void Befall(const std::string& url, Mishap mishap) {
    MutexLock lock(&mutex_);
    mishaps_[url].push_back(std::move(mishap));
  }
  // Blocks requests for URLs that begin with `prefix`, or releases them.
  void Hold(bool hold, const std::string& prefix = "") {
    MutexLock lock(&mutex_);
    held_ = hold;
    held_prefix_ = prefix;
  }
  std::vector<HttpRequest> requests() const {
    MutexLock lock(&mutex_);
    return requests_;
  }
  // Blocks until `count` requests have arrived, held requests included. Returns false after a minute.
  bool AwaitRequests(size_t count) const {
    MutexLock lock(&mutex_);
    const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return requests_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&came), absl::Minutes(1));
  }
  int CountOf(const std::string& url) const {
    MutexLock lock(&mutex_);
    return static_cast<int>(std::count_if(requests_.begin(), requests_.end(),
                                          [&](const HttpRequest& r) { return r.url == url; }));
  }

  absl::StatusOr<HttpResponse> Get(const HttpRequest& request, HttpSink& sink) override {
    Mishap mishap;
    File file;
    bool found = false;
    {
      MutexLock lock(&mutex_);
      requests_.push_back(request);
      const auto is_free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !held_ || stopped_ || !absl::StartsWith(request.url, held_prefix_);
      };
      mutex_.Await(absl::Condition(&is_free));
      if (stopped_) return absl::CancelledError("stopped");
      std::deque<Mishap>& mishaps = mishaps_[request.url];
      if (!mishaps.empty()) {
        mishap = mishaps.front();
        mishaps.pop_front();
      }
      const auto place = files_.find(request.url);
      found = place != files_.end();
      if (found) file = place->second;
    }
    if (!mishap.error.ok()) return mishap.error;
    HttpResponse response;
    if (mishap.status != 0) {
      response.status = mishap.status;
      response.headers = mishap.headers;
      response.redirect = mishap.redirect;
      response.error_body = mishap.body;
      return response;
    }
    if (!found) {
      response.status = 404;
      return response;
    }
    return Send(request, mishap, file, sink);
  }

  void Stop() override {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }

 private:
  static std::string HeaderOf(const HttpRequest& request, const std::string& name) {
    for (const std::string& header : request.headers) {
      if (absl::StartsWith(header, name + ": ")) return header.substr(name.size() + 2);
    }
    return "";
  }

  static absl::StatusOr<HttpResponse> Send(const HttpRequest& request, const Mishap& mishap, const File& file,
                                           HttpSink& sink) {
    HttpResponse response;
    if (!file.etag.empty()) response.headers["etag"] = file.etag;
    if (!file.etag.empty() && HeaderOf(request, "If-None-Match") == file.etag) {
      response.status = 304;
      return response;
    }
    if (const std::string match = HeaderOf(request, "If-Match"); !match.empty() && match != file.etag) {
      response.status = 412;
      return response;
    }
    size_t begin = 0;
    std::string range = HeaderOf(request, "Range");
    const std::string if_range = HeaderOf(request, "If-Range");
    response.status = 200;
    if (!range.empty() && !mishap.no_ranges && (if_range.empty() || if_range == file.etag)) {
      begin = std::stoul(range.substr(6));
      if (begin >= file.content.size()) {
        response.status = 416;
        return response;
      }
      response.status = 206;
      response.headers["content-range"] =
          absl::StrCat("bytes ", begin, "-", file.content.size() - 1, "/", file.content.size());
    }
    if (!mishap.no_length) response.headers["content-length"] = absl::StrCat(file.content.size() - begin);
    if (absl::Status status = sink.OnHeaders(response); !status.ok()) return status;
    const std::string rest = file.content.substr(begin);
    const size_t sent = mishap.cut_after < 0 ? rest.size() : std::min(rest.size(), size_t(mishap.cut_after));
    for (size_t at = 0; at < sent; at += 1000) {
      const std::string piece = rest.substr(at, std::min(size_t{1000}, sent - at));
      if (absl::Status status = sink.OnData(piece); !status.ok()) return status;
    }
    if (sent < rest.size() && !mishap.no_length) return absl::UnavailableError("the connection broke");
    return response;
  }

  mutable Mutex mutex_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::deque<Mishap>> mishaps_ ABSL_GUARDED_BY(mutex_);
  std::vector<HttpRequest> requests_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::string held_prefix_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FAKE_TRANSPORT_H_
