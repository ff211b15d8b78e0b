#include "server/fetch/s3.h"

#include <pugixml.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// A page has at most 1000 objects with keys of at most 1024 bytes, perhaps escaped.
constexpr size_t kMaxPageBytes = 16 << 20;

// S3's signatures require escapes for all characters except letters, digits and "-._~".
std::string Encode(absl::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keep_slashes && c == '/')) {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace

absl::StatusOr<S3Bucket::Page> ParseS3Page(const std::string& xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!parsed || !root) {
    return absl::UnavailableError(absl::StrCat("cannot read the server's list of objects: ",
                                               parsed ? "it is not a list" : parsed.description()));
  }
  S3Bucket::Page page;
  for (const pugi::xml_node entry : root.children("Contents")) {
    S3Object object;
    object.key = entry.child_value("Key");
    object.size_bytes = entry.child("Size").text().as_llong(-1);
    object.etag = entry.child_value("ETag");
    if (object.key.empty() || object.size_bytes < 0) {
      return absl::UnavailableError(
          "cannot read the server's list of objects: an object has no key or no size");
    }
    page.objects.push_back(std::move(object));
  }
  if (root.child("IsTruncated").text().as_bool()) {
    page.next_token = root.child_value("NextContinuationToken");
    if (page.next_token.empty()) {
      return absl::UnavailableError(
          "cannot read the server's list of objects: it is incomplete, and does not say how to continue");
    }
  }
  return page;
}

S3Bucket::S3Bucket(std::string bucket, S3Config config, Transport* transport)
    : bucket_(std::move(bucket)),
      config_(std::move(config)),
      transport_(transport),
      region_(config_.region) {}

std::string S3Bucket::UrlOf(const std::string& target, const std::string& region) const {
  if (!config_.endpoint.empty()) return absl::StrCat(config_.endpoint, "/", bucket_, "/", target);
  // The certificate for *.s3.region.amazonaws.com does not match a bucket with dots.
  if (bucket_.find('.') != std::string::npos) {
    return absl::StrCat("https://s3.", region, ".amazonaws.com/", bucket_, "/", target);
  }
  return absl::StrCat("https://", bucket_, ".s3.", region, ".amazonaws.com/", target);
}

absl::StatusOr<HttpResponse> S3Bucket::GetObject(const std::string& key,
                                                 const std::vector<std::string>& headers, HttpSink& sink) {
  return Get(Encode(key, /*keep_slashes=*/true), absl::StrCat("s3://", bucket_, "/", key), headers, sink);
}

absl::StatusOr<S3Bucket::Page> S3Bucket::List(const std::string& prefix, const std::string& token) {
  // S3's signatures require a query sorted by name.
  const std::string target =
      absl::StrCat("?", token.empty() ? "" : absl::StrCat("continuation-token=", Encode(token, false), "&"),
                   "list-type=2&prefix=", Encode(prefix, false));
  MemorySink sink(kMaxPageBytes);
  const std::string shown = absl::StrCat("s3://", bucket_, "/", prefix);
  TANDEM_RETURN_IF_ERROR(Get(target, shown, {}, sink).status());
  return ParseS3Page(sink.content());
}

absl::StatusOr<HttpResponse> S3Bucket::Get(const std::string& target, const std::string& shown,
                                           const std::vector<std::string>& headers, HttpSink& sink) {
  for (bool elsewhere = false;; elsewhere = true) {
    std::string region;
    {
      MutexLock lock(&mutex_);
      region = region_;
    }
    HttpRequest request;
    request.url = UrlOf(target, region);
    request.headers = headers;
    // The daemon's owner named the endpoint, so its address may be private.
    request.any_address = !config_.endpoint.empty();
    if (!config_.access_key.empty()) {
      request.signature = S3Signature{config_.access_key, config_.secret_key, config_.session_token, region};
    }
    TANDEM_ASSIGN_OR_RETURN(HttpResponse response, transport_->Get(request, sink));
    if (IsUsable(response)) return response;
    const std::string real_region = response.Header("x-amz-bucket-region");
    if (elsewhere || real_region.empty() || real_region == region) return Explain(response, shown);
    MutexLock lock(&mutex_);
    region_ = real_region;
  }
}

absl::Status S3Bucket::Explain(const HttpResponse& response, const std::string& shown) const {
  TANDEM_RETURN_IF_ERROR(PatienceAsked(response));
  pugi::xml_document document;
  document.load_buffer(response.error_body.data(), response.error_body.size());
  const std::string code = document.child("Error").child_value("Code");
  const std::string message = document.child("Error").child_value("Message");
  const std::string where = absl::StrCat("is ", shown, ", but ");
  const std::string said =
      absl::StrCat(" (HTTP status ", response.status, code.empty() ? "" : ", ", code, ")");
  if (code == "RequestTimeTooSkewed") {
    return absl::InvalidArgumentError(absl::StrCat(where, "the server refuses it", said,
                                                   ": the clock of the daemon's machine is wrong; set it"));
  }
  if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "InvalidToken" ||
      code == "ExpiredToken" || code == "AuthorizationHeaderMalformed") {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "the server refuses the daemon's credentials", said, ": ", message,
        message.empty() ? "" : "; ",
        "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION, or AWS_PROFILE "
        "and its files, in the daemon's environment"));
  }
  if (response.status == 401 || response.status == 403) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "the server refuses it", said, ": ",
        config_.access_key.empty() ? "the daemon has no credentials; its owner can set AWS_ACCESS_KEY_ID and "
                                     "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, in its environment"
                                   : "the daemon's credentials do not allow it, or it does not exist; "
                                     "reading needs s3:GetObject, and folders s3:ListBucket"));
  }
  if (code == "NoSuchBucket") {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "there is no such bucket", said, "; check the address",
        config_.endpoint.empty() ? "" : " and the daemon's AWS_ENDPOINT_URL, ", config_.endpoint));
  }
  if (response.status == 404) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "there is no such object", said, "; check the address"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, "the server answered with an error", said, message.empty() ? "" : ": ", message));
}

}  // namespace tandem
