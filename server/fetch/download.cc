#include "server/fetch/download.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// The bytes per reservation if the file's size is unknown.
constexpr int64_t kReserveStep = 64 << 20;
// The count of tries restarts after this many new bytes. A server that sends a byte per try must not keep a
// thread for ever.
constexpr int64_t kProgress = 64 << 10;

// For example "bytes 10-99/100".
struct ContentRange {
  int64_t first = 0;
  int64_t total = 0;  // 0: unknown.
};

std::optional<ContentRange> ParseContentRange(absl::string_view text) {
  ContentRange range;
  if (!absl::ConsumePrefix(&text, "bytes ")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(parts.first, absl::MaxSplits('-', 1));
  if (!absl::SimpleAtoi(ends.first, &range.first)) return std::nullopt;
  if (parts.second != "*" && !absl::SimpleAtoi(parts.second, &range.total)) return std::nullopt;
  return range;
}

// A longer tag or date is ignored, because a fetch keeps both for each of its files.
constexpr size_t kMostValidatorBytes = 1024;

std::string ValidatorOf(const HttpResponse& response, const std::string& header) {
  const std::string validator = response.Header(header);
  return validator.size() > kMostValidatorBytes ? "" : validator;
}

// A weak tag does not identify bytes.
std::string StrongTag(const HttpResponse& response) {
  const std::string tag = ValidatorOf(response, "etag");
  return absl::StartsWith(tag, "W/") ? "" : tag;
}

// Returns the path of a hidden file beside `path`. A folder's own files are never hidden.
std::string HiddenBeside(const std::string& path, absl::string_view ending) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / absl::StrCat(".", whole.filename().string(), ending)).string();
}

// One download with all its tries.
class Transfer : public HttpSink {
 public:
  Transfer(Origin& origin, const DownloadRequest& request, const RetryPolicy& retry,
           const DownloadContext& context)
      : origin_(origin),
        shown_(origin.shown()),
        request_(request),
        backoff_(retry),
        context_(context),
        part_path_(HiddenBeside(request.path, ".part")),
        state_path_(HiddenBeside(request.path, ".json")),
        reserved_(request.reserved) {}

  absl::StatusOr<std::optional<internal::v1::CacheFile>> Run() {
    TANDEM_RETURN_IF_ERROR(FindPart());
    while (true) {
      absl::StatusOr<bool> came = Try();
      if (came.ok()) {
        if (!*came) {
          Drop();
          return std::optional<internal::v1::CacheFile>();
        }
        absl::StatusOr<std::optional<internal::v1::CacheFile>> file = Finish();
        // The bytes of an earlier download may be wrong.
        if (file.ok() || !std::exchange(continued_, false)) return file;
        TANDEM_RETURN_IF_ERROR(Restart());
        continue;
      }
      if (!absl::IsUnavailable(came.status())) return came.status();
      const bool brought = furthest_ - counted_from_ >= kProgress;
      if (brought) counted_from_ = furthest_;
      const std::optional<absl::Duration> wait = backoff_.After(came.status(), brought);
      if (!wait.has_value()) {
        return WithReason(absl::InvalidArgumentError(
                              absl::StrCat("is ", shown_, ", which could not be fetched in ",
                                           backoff_.tries(), " tries: ", came.status().message(),
                                           "; the fetched part is kept, and the next try continues there")),
                          kOriginUnreachable);
      }
      if (!context_.sleep(*wait)) return absl::CancelledError("the daemon is shutting down");
    }
  }

  absl::Status OnHeaders(const HttpResponse& response) override {
    const std::string tag = StrongTag(response);
    const std::string modified = ValidatorOf(response, "last-modified");
    if (response.status == 206) {
      const std::optional<ContentRange> range = ParseContentRange(response.Header("content-range"));
      if (!range.has_value() || range->first != here_ || (!tag.empty() && tag != state_.etag()) ||
          (range->total > 0 && state_.size_bytes() > 0 && range->total != state_.size_bytes())) {
        changed_ = true;
        return absl::UnavailableError("the file changed while it was fetched");
      }
      if (range->total > 0) state_.set_size_bytes(range->total);
      return OpenPart();
    }
    // The server sends the whole file, even if a range was asked for.
    TANDEM_RETURN_IF_ERROR(Restart());
    state_.set_etag(tag);
    state_.set_last_modified(modified);
    int64_t size = 0;
    if (absl::SimpleAtoi(response.Header("content-length"), &size) && size > 0) state_.set_size_bytes(size);
    if (state_.size_bytes() > 0) TANDEM_RETURN_IF_ERROR(Reserve(state_.size_bytes()));
    std::string json;
    if (!google::protobuf::util::MessageToJsonString(state_, &json).ok()) {
      return absl::InternalError("cannot write the state of a download");
    }
    TANDEM_RETURN_IF_ERROR(WriteFileAtomically(context_.env, state_path_,
                                               [&](WritableFile& file) { return file.Append(json); }));
    return OpenPart();
  }

  absl::Status OnData(absl::string_view data) override {
    const int64_t size = static_cast<int64_t>(data.size());
    if (here_ + size > reserved_)
      TANDEM_RETURN_IF_ERROR(Reserve(std::max(here_ + size, reserved_ + kReserveStep)));
    TANDEM_RETURN_IF_ERROR(part_->Append(data));
    sha256_.Add(data);
    here_ += size;
    // Bytes that are sent again are no progress.
    furthest_ = std::max(furthest_, here_);
    context_.progress(here_, std::max(state_.size_bytes(), int64_t{0}));
    return absl::OkStatus();
  }

 private:
  // Continues the part of an earlier daemon or request.
  absl::Status FindPart() {
    const absl::StatusOr<std::string> json = context_.env->ReadFile(state_path_);
    std::error_code error;
    const auto size = std::filesystem::file_size(part_path_, error);
    if (!json.ok() || error || size == 0 ||
        !google::protobuf::util::JsonStringToMessage(*json, &state_).ok() ||
        (state_.etag().empty() && state_.last_modified().empty()) ||
        (state_.size_bytes() > 0 && static_cast<int64_t>(size) > state_.size_bytes())) {
      return Restart();
    }
    std::ifstream part(part_path_, std::ios::binary);
    std::vector<char> buffer(1 << 20);
    while (part.read(buffer.data(), buffer.size()) || part.gcount() > 0) {
      sha256_.Add(absl::string_view(buffer.data(), part.gcount()));
      here_ += part.gcount();
    }
    if (here_ != static_cast<int64_t>(size)) return Restart();
    continued_ = true;
    TANDEM_RETURN_IF_ERROR(Reserve(std::max(state_.size_bytes(), here_)));
    context_.progress(here_, state_.size_bytes());
    return absl::OkStatus();
  }

  // Returns true if the file is complete, and false if the known version is still current.
  absl::StatusOr<bool> Try() {
    if (here_ > 0 && here_ == state_.size_bytes()) return true;
    std::vector<std::string> headers;
    const std::string& validator = state_.etag().empty() ? state_.last_modified() : state_.etag();
    if (here_ > 0 && validator.empty()) TANDEM_RETURN_IF_ERROR(Restart());
    if (here_ > 0) {
      headers.push_back(absl::StrCat("Range: bytes=", here_, "-"));
      const bool by_time = state_.etag().empty() && origin_.resume_header() == absl::string_view("If-Match");
      headers.push_back(
          absl::StrCat(by_time ? "If-Unmodified-Since" : origin_.resume_header(), ": ", validator));
    } else if (request_.known != nullptr && !request_.known->etag().empty()) {
      headers.push_back(absl::StrCat("If-None-Match: ", request_.known->etag()));
    } else if (request_.known != nullptr && !request_.known->last_modified().empty()) {
      headers.push_back(absl::StrCat("If-Modified-Since: ", request_.known->last_modified()));
    }
    changed_ = false;
    const absl::StatusOr<HttpResponse> response = origin_.Get(headers, *this);
    if (part_ != nullptr) {
      const absl::Status closed = std::exchange(part_, nullptr)->Close();
      if (response.ok()) TANDEM_RETURN_IF_ERROR(closed);
    }
    if (changed_) TANDEM_RETURN_IF_ERROR(Restart());
    if (!response.ok()) return response.status();
    switch (response->status) {
      case 304:
        if (request_.known != nullptr && here_ == 0) return false;
        return absl::UnavailableError("the server answered \"not modified\" to a first request");
      case 412:
      case 416:
        if (here_ == 0)
          return absl::InvalidArgumentError(
              absl::StrCat("is ", shown_, ", but the server refuses to send it"));
        TANDEM_RETURN_IF_ERROR(Restart());
        return absl::UnavailableError("the file changed while it was fetched");
      default:
        break;
    }
    if (state_.size_bytes() > 0 && here_ != state_.size_bytes()) {
      if (here_ > state_.size_bytes()) TANDEM_RETURN_IF_ERROR(Restart());
      return absl::UnavailableError(
          absl::StrCat("the connection ended after ", here_, " of ", state_.size_bytes(), " bytes"));
    }
    return true;
  }

  absl::StatusOr<std::optional<internal::v1::CacheFile>> Finish() {
    TANDEM_ASSIGN_OR_RETURN(const std::string digest, sha256_.Finish());
    if (!request_.sha256.empty() && digest != request_.sha256) {
      Drop();
      return absl::InvalidArgumentError(absl::StrCat("is ", shown_, ", but its content has the SHA-256 ",
                                                     digest, " (", here_, " bytes), not ", request_.sha256,
                                                     " as required: the file was changed, or the address is "
                                                     "wrong; check the address, or give the new #sha256="));
    }
    TANDEM_RETURN_IF_ERROR(OpenPart());
    TANDEM_RETURN_IF_ERROR(part_->Sync());
    TANDEM_RETURN_IF_ERROR(std::exchange(part_, nullptr)->Close());
    TANDEM_RETURN_IF_ERROR(context_.env->RenameFile(part_path_, request_.path));
    unlink(state_path_.c_str());
    TANDEM_RETURN_IF_ERROR(context_.env->SyncDirectory(std::filesystem::path(request_.path).parent_path()));
    internal::v1::CacheFile file;
    file.set_etag(state_.etag());
    file.set_last_modified(state_.last_modified());
    file.set_size_bytes(here_);
    file.set_sha256(digest);
    return std::optional<internal::v1::CacheFile>(std::move(file));
  }

  absl::Status OpenPart() {
    TANDEM_ASSIGN_OR_RETURN(
        part_, here_ == 0 ? context_.env->CreateFile(part_path_) : context_.env->AppendToFile(part_path_));
    return absl::OkStatus();
  }

  absl::Status Reserve(int64_t bytes) {
    if (bytes <= reserved_) return absl::OkStatus();
    TANDEM_RETURN_IF_ERROR(context_.reserve(bytes - reserved_));
    reserved_ = bytes;
    return absl::OkStatus();
  }

  // Restarts from the first byte.
  absl::Status Restart() {
    part_ = nullptr;
    here_ = 0;
    continued_ = false;
    sha256_ = Sha256();
    state_.Clear();
    Drop();
    context_.progress(0, 0);
    return absl::OkStatus();
  }

  void Drop() {
    unlink(part_path_.c_str());
    unlink(state_path_.c_str());
  }

  Origin& origin_;
  const std::string& shown_;
  const DownloadRequest& request_;
  Backoff backoff_;
  const DownloadContext& context_;
  const std::string part_path_;
  const std::string state_path_;

  // The received part and its version.
  internal::v1::PartialFile state_;
  int64_t here_ = 0;
  Sha256 sha256_;
  std::unique_ptr<WritableFile> part_;
  // True if an earlier download left a part of the file.
  bool continued_ = false;
  // The most bytes so far, and their value at the last restart of the count of tries.
  int64_t furthest_ = 0;
  int64_t counted_from_ = 0;
  // True if the current try found another version.
  bool changed_ = false;
  int64_t reserved_;
};

}  // namespace

absl::StatusOr<std::optional<internal::v1::CacheFile>> Download(Origin& origin,
                                                                const DownloadRequest& request,
                                                                const RetryPolicy& retry,
                                                                const DownloadContext& context) {
  return Transfer(origin, request, retry, context).Run();
}

}  // namespace tandem
