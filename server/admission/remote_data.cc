#include "server/admission/remote_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"

namespace tandem {

bool IsUrl(absl::string_view path) {
  const size_t colon = path.find("://");
  if (colon == 0 || colon == absl::string_view::npos) return false;
  const absl::string_view scheme = path.substr(0, colon);
  return absl::ascii_isalpha(scheme.front()) && std::all_of(scheme.begin(), scheme.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
         });
}

std::string ShownUrl(absl::string_view url) {
  const size_t end = url.find_first_of("?#");
  if (end == absl::string_view::npos) return std::string(url);
  return absl::StrCat(url.substr(0, end), url[end] == '?' ? "?..." : "");
}

std::vector<FieldUrl> UrlsOf(const v1::DatasetSpec& spec, absl::string_view prefix) {
  std::vector<FieldUrl> urls;
  v1::DatasetSpec copy = spec;
  for (const SourcePath& path : PathsOf(&copy)) {
    if (!IsUrl(*path.path)) continue;
    urls.push_back(
        {absl::StrCat(prefix, prefix.empty() ? "" : ".", path.field), std::move(*path.path), path.kind});
  }
  return urls;
}

void SetUrls(const std::vector<std::string>& urls, v1::DatasetSpec* spec) {
  size_t i = 0;
  for (const SourcePath& path : PathsOf(spec)) {
    if (IsUrl(*path.path)) *path.path = urls[i++];
  }
}

bool NamesUrls(const v1::DatasetSpec& spec) {
  v1::DatasetSpec copy = spec;
  for (const SourcePath& path : PathsOf(&copy)) {
    if (IsUrl(*path.path)) return true;
  }
  return false;
}

size_t PinnedBytes(absl::string_view url) {
  // The bytes of "#sha256=", of the digits, and of a string on the heap.
  constexpr size_t kEach = 8 + 64 + 32;
  return url.size() + kEach;
}

size_t PinBytes(const v1::DatasetSpec& spec) {
  size_t bytes = 0;
  v1::DatasetSpec copy = spec;
  // A string that grows may double its capacity.
  for (const SourcePath& path : PathsOf(&copy)) bytes += IsUrl(*path.path) ? PinnedBytes(*path.path) : 0;
  return bytes;
}

absl::Status DataBeingFetched(const FetchProgress& progress) {
  std::string how_far;
  if (progress.bytes_total > 0) {
    how_far = absl::StrFormat("%.1f of %.1f MB", progress.bytes_done / 1e6, progress.bytes_total / 1e6);
  } else {
    how_far = absl::StrFormat("%.1f MB so far", progress.bytes_done / 1e6);
  }
  if (progress.files_total > 1) {
    absl::StrAppend(&how_far, ", ", progress.files_done, " of ", progress.files_total, " files");
  }
  absl::Status status =
      absl::UnavailableError(absl::StrCat("cannot answer yet: the daemon is still fetching the data (",
                                          how_far, "); send the same request again, the fetch continues"));
  status = WithReason(std::move(status), kDataBeingFetched);
  return WithReasonDetails(std::move(status), {{"bytes_done", absl::StrCat(progress.bytes_done)},
                                               {"bytes_total", absl::StrCat(progress.bytes_total)},
                                               {"files_done", absl::StrCat(progress.files_done)},
                                               {"files_total", absl::StrCat(progress.files_total)}});
}

absl::Status WithFieldPrefix(absl::string_view prefix, const absl::Status& status) {
  if (GetFieldViolations(status).empty()) return status;
  FieldViolations violations;
  violations.AddAll(prefix, status);
  const absl::Status renamed = violations.ToStatus();
  absl::Status result(status.code(), renamed.message());
  const auto copy = [&result](absl::string_view type, const absl::Cord& payload) {
    result.SetPayload(type, payload);
  };
  status.ForEachPayload(copy);
  renamed.ForEachPayload(copy);
  return result;
}

void RemoteData::Ensure(const v1::DatasetSpec& spec, const std::string& user, absl::Duration wait,
                        Done done) {
  EnsureUrls(UrlsOf(spec), user, wait,
             [spec = v1::DatasetSpec(spec),
              done = std::move(done)](absl::StatusOr<std::vector<std::string>> urls) mutable {
               if (!urls.ok()) return done(urls.status());
               SetUrls(*urls, &spec);
               done(std::move(spec));
             });
}

}  // namespace tandem
