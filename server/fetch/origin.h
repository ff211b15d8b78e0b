#ifndef TANDEM_SERVER_FETCH_ORIGIN_H_
#define TANDEM_SERVER_FETCH_ORIGIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/fetch/transport.h"

namespace tandem {

// A file at its place of origin. Thread-safe.
class Origin {
 public:
  virtual ~Origin() = default;
  // As Transport::Get; a response that it cannot go on with ("it is not there") is an error as well, in words
  // that follow a field's name. Responses are those of 200, 206, 304, 412 and 416.
  virtual absl::StatusOr<HttpResponse> Get(const std::vector<std::string>& headers, HttpSink& sink) = 0;
  // Its address, for people.
  virtual const std::string& shown() const = 0;
  // The header that makes the rest of a file be sent only where it is still that of the entity tag.
  virtual const char* resume_header() const = 0;
};

// Keeps what comes, up to a size; for what is small.
class MemorySink : public HttpSink {
 public:
  explicit MemorySink(size_t most) : most_(most) {}
  absl::Status OnHeaders(const HttpResponse&) override {
    content_.clear();
    return absl::OkStatus();
  }
  absl::Status OnData(absl::string_view data) override {
    if (data.size() > most_ - content_.size())
      return absl::InvalidArgumentError("sends more than can be right");
    content_.append(data.data(), data.size());
    return absl::OkStatus();
  }
  const std::string& content() const { return content_; }

 private:
  const size_t most_;
  std::string content_;
};

// UNAVAILABLE, with what Retry-After said, for a status by which a server asks for patience; OK for others.
absl::Status PatienceAsked(const HttpResponse& response);
// The seconds that a server asked to wait, at most a minute; 0 where it said nothing.
int RetryAfterSeconds(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_ORIGIN_H_
