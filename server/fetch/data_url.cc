#include "server/fetch/data_url.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kMaxLength = 4096;
constexpr absl::string_view kS3 = "s3://";
constexpr absl::string_view kFragment = "#sha256=";

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), text.size() > 200 ? "..." : "", "'");
}

// Removes "#sha256=..." from `text`.
absl::Status TakeDigest(absl::string_view& text, std::string* sha256) {
  const size_t begin = text.rfind(kFragment);
  if (begin == absl::string_view::npos) return absl::OkStatus();
  *sha256 = absl::AsciiStrToLower(text.substr(begin + kFragment.size()));
  if (sha256->size() != 64 || !std::all_of(sha256->begin(), sha256->end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(absl::StrCat("ends in ", Quote(text.substr(begin)),
                                                   "; it must end in #sha256= and 64 hexadecimal digits"));
  }
  text = text.substr(0, begin);
  return absl::OkStatus();
}

absl::StatusOr<DataUrl> ParseS3(absl::string_view text) {
  DataUrl url;
  url.scheme = DataUrl::Scheme::kS3;
  url.location = url.shown = std::string(text);
  const absl::string_view rest = text.substr(kS3.size());
  url.host = std::string(rest.substr(0, rest.find('/')));
  if (url.host.size() < rest.size()) url.key = std::string(rest.substr(url.host.size() + 1));
  const bool bucket = url.host.size() >= 3 && url.host.size() <= 63 &&
                      std::all_of(url.host.begin(), url.host.end(), [](char c) {
                        return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
                      });
  if (!bucket) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Quote(text), "; it must be s3://bucket/key: ", Quote(url.host), " cannot be a bucket's name"));
  }
  return url;
}

// Returns a part of a URL; empty if the URL has no such part.
std::string PartOf(CURLU* parsed, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(parsed, part, &text, flags) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

absl::StatusOr<DataUrl> ParseHttp(absl::string_view text) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, std::string(text).c_str(), 0);
  const std::string scheme = code == CURLUE_OK ? PartOf(parsed.get(), CURLUPART_SCHEME) : "";
  if (code == CURLUE_UNSUPPORTED_SCHEME || (code == CURLUE_OK && scheme != "http" && scheme != "https")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Quote(text.substr(0, text.find("://") + 3)),
        "..., but the daemon fetches only from https, http and s3; a file's path has no scheme"));
  }
  if (code != CURLUE_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Quote(text), ", which is not a URL: ", curl_url_strerror(code),
                     "; write spaces and other special characters as %20 and so on"));
  }
  if (!PartOf(parsed.get(), CURLUPART_USER).empty() || !PartOf(parsed.get(), CURLUPART_PASSWORD).empty()) {
    return absl::InvalidArgumentError(
        "has a user or a password in the URL, and everyone who may see the job would see them; leave them "
        "out");
  }
  if (!PartOf(parsed.get(), CURLUPART_FRAGMENT).empty()) {
    return absl::InvalidArgumentError("has a fragment ('#...') other than #sha256=; leave it out");
  }
  DataUrl url;
  url.scheme = scheme == "http" ? DataUrl::Scheme::kHttp : DataUrl::Scheme::kHttps;
  url.location = PartOf(parsed.get(), CURLUPART_URL);
  url.shown = url.location.substr(0, url.location.find('?'));
  if (url.shown.size() < url.location.size()) url.shown += "?...";
  url.host = absl::AsciiStrToLower(PartOf(parsed.get(), CURLUPART_HOST));
  if (absl::StartsWith(url.host, "[")) url.host = url.host.substr(1, url.host.size() - 2);
  // "example.com." is the same host.
  url.host = std::string(absl::StripSuffix(url.host, "."));
  if (!absl::SimpleAtoi(PartOf(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT), &url.port)) url.port = 0;
  return url;
}

}  // namespace

absl::StatusOr<DataUrl> ParseDataUrl(absl::string_view text) {
  if (text.size() > kMaxLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", text.size(), " characters; it must have at most ", kMaxLength));
  }
  if (std::any_of(text.begin(), text.end(), [](char c) { return absl::ascii_iscntrl(c); })) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Quote(text), "; it must not have control characters"));
  }
  std::string sha256;
  TANDEM_RETURN_IF_ERROR(TakeDigest(text, &sha256));
  absl::StatusOr<DataUrl> url = absl::StartsWithIgnoreCase(text, kS3) ? ParseS3(text) : ParseHttp(text);
  if (url.ok()) url->sha256 = std::move(sha256);
  return url;
}

absl::string_view WithoutQuery(const DataUrl& url) {
  const absl::string_view location = url.location;
  return url.is_s3() ? location : location.substr(0, location.find('?'));
}

std::string Pin(const DataUrl& url, absl::string_view sha256) {
  return absl::StrCat(url.location, kFragment, sha256);
}

std::string FileNameOf(const DataUrl& url) {
  const absl::string_view path = WithoutQuery(url);
  std::string name(path.substr(path.rfind('/') + 1));
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-' && c != '_') c = '_';
  }
  if (name.size() > 100) name = name.substr(name.size() - 100);
  if (name.empty() || name.front() == '.') return "data";
  return name;
}

}  // namespace tandem
