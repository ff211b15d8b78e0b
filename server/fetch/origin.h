#ifndef TANDEM_SERVER_FETCH_ORIGIN_H_
#define TANDEM_SERVER_FETCH_ORIGIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/fetch/transport.h"

namespace tandem {

// A file at its origin. Thread-safe.
class Origin {
 public:
  virtual ~Origin() = default;
  // Like Transport::Get, but an unusable response ("it is not there") is an error, whose message completes a
  // sentence that begins with a field's name. Returns only responses with status 200, 206, 304, 412 and 416.
  virtual absl::StatusOr<HttpResponse> Get(const std::vector<std::string>& headers, HttpSink& sink) = 0;
  // Returns the address for people.
  virtual const std::string& shown() const = 0;
  // Returns the header that asks for the rest of a file only if its entity tag still matches.
  virtual const char* resume_header() const = 0;
};

// Keeps small content in memory, up to a limit.
class MemorySink : public HttpSink {
 public:
  explicit MemorySink(size_t most) : most_(most) {}
  absl::Status OnHeaders(const HttpResponse&) override {
    content_.clear();
    return absl::OkStatus();
  }
  absl::Status OnData(absl::string_view data) override {
    if (data.size() > most_ - content_.size())
      return absl::InvalidArgumentError("the server's answer is too long");
    content_.append(data.data(), data.size());
    return absl::OkStatus();
  }
  const std::string& content() const { return content_; }

 private:
  const size_t most_;
  std::string content_;
};

// Returns true for the statuses that Origin::Get returns.
bool IsUsable(const HttpResponse& response);
// Returns UNAVAILABLE with the wait in Retry-After if the response's status asks to retry later. OK
// otherwise.
absl::Status PatienceAsked(const HttpResponse& response);
// Returns the seconds that a server asked to wait, at most 60; 0 if none.
int RetryAfterSeconds(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_ORIGIN_H_
