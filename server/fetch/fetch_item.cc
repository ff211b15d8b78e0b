#include "server/fetch/fetch_item.h"

#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/error_reason.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "proto/data_folder/shards.h"
#include "server/fetch/download.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using internal::v1::CacheEntry;
using internal::v1::CacheFile;

// A file in a fetch's folder, with a line of JSON for each whole file.
constexpr char kNotes[] = "/fetched.jsonl";
// The number of tries at an address before the next address.
constexpr int kTriesBeforeNext = 2;

// Returns -1 if the file does not exist.
int64_t ModifyTimeNanos(const std::string& path, int64_t* size) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return -1;
  *size = info.st_size;
  return int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec;
}

absl::Status MakeParent(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot make the folder of ", path, ": ", error.message()));
}

// A folder's content is pinned to the digest of this listing.
std::string ListingOf(const CacheEntry& entry) {
  std::string listing;
  for (const CacheFile& file : entry.files())
    absl::StrAppend(&listing, file.sha256(), " ", file.path(), "\n");
  return listing;
}

}  // namespace

FetchItem::FetchItem(DataUrl url, PathKind kind, std::vector<std::string> addresses)
    : url_(std::move(url)),
      kind_(kind),
      addresses_(std::move(addresses)),
      url_sha256_(Sha256Of(url_.location).value_or("")),
      key_(absl::StrCat(url_sha256_.substr(0, 32), "-", static_cast<int>(kind), "-",
                        url_.sha256.substr(0, 24))),
      may_have_many_files_(kind_ != PathKind::kFile && (url_.is_s3() || IsShardPattern(WithoutQuery(url_)))) {
}

FetchProgress FetchItem::progress() const { return {bytes_done_, bytes_total_, files_done_, files_total_}; }

int64_t FetchItem::plan_bytes() const {
  size_t bytes = known_.has_value() ? known_->SpaceUsedLong() : 0;
  for (const std::optional<CacheFile>& file : earlier_) {
    if (file.has_value()) bytes += file->SpaceUsedLong();
  }
  for (const PlannedFile& file : plan_.files) {
    // The path and the tag are in plan_, and in files_ when the file is fetched.
    bytes += 2 * (file.path.size() + file.etag.size());
  }
  const size_t one = sizeof(PlannedFile) + sizeof(CacheFile) + sizeof(earlier_[0]) + sizeof(missing_[0]);
  return static_cast<int64_t>(bytes + plan_.files.size() * one);
}

void FetchItem::SetWhole(const CacheEntry& entry) {
  bytes_done_ = bytes_total_ = entry.size_bytes();
  files_done_ = files_total_ = entry.files_size();
}

std::optional<CacheEntry> FetchItem::FindCached(Cache* cache) const {
  std::optional<CacheEntry> entry = cache->Find(url_sha256_, url_.sha256);
  const bool is_either = kind_ == PathKind::kFileOrFolder || kind_ == PathKind::kShards;
  if (entry.has_value() && !is_either && entry->folder() != (kind_ == PathKind::kFolder)) {
    return std::nullopt;
  }
  return entry;
}

absl::StatusOr<std::optional<CacheEntry>> FetchItem::Plan(const FetchTools& tools, bool fresh) {
  std::optional<CacheEntry> cached = FindCached(tools.cache);
  if (cached.has_value() && (fresh || !url_.sha256.empty())) return cached;
  known_ = std::move(cached);
  if (addresses_.empty()) {
    TANDEM_ASSIGN_OR_RETURN(plan_, tools.planner->Plan(url_, kind_));
  } else {
    TANDEM_ASSIGN_OR_RETURN(plan_, tools.public_planner->PlanFile(FileNameOf(url_), addresses_));
  }
  TANDEM_RETURN_IF_ERROR(PrepareFolder(tools));
  return std::optional<CacheEntry>();
}

absl::Status FetchItem::PrepareFolder(const FetchTools& tools) {
  TANDEM_ASSIGN_OR_RETURN(folder_, tools.cache->Begin(key_));
  files_.resize(plan_.files.size());
  files_total_ = static_cast<int64_t>(files_.size());
  if (!plan_.folder) {
    missing_.push_back(0);
    // Its size is unknown before the server's answer. A cached file may need no room.
    return known_.has_value() ? absl::OkStatus() : tools.cache->Reserve(key_, kCacheBlockBytes);
  }
  // The files of an earlier try, and the files of the cached entry.
  std::map<std::string, CacheFile> here, known;
  const absl::StatusOr<std::string> notes = tools.env->ReadFile(folder_ + kNotes);
  for (const absl::string_view line : absl::StrSplit(notes.ok() ? *notes : "", '\n', absl::SkipEmpty())) {
    CacheFile file;
    // A crash may have cut the last line.
    if (google::protobuf::util::JsonStringToMessage(std::string(line), &file).ok()) here[file.path()] = file;
  }
  if (known_.has_value()) {
    for (const CacheFile& file : known_->files()) known[file.path()] = file;
  }
  // Returns whether the file may be the planned one. Without a listing, its server must confirm it.
  const auto may_be = [](const PlannedFile& planned, const CacheFile& file) {
    return planned.size_bytes < 0 ||
           (!planned.etag.empty() && planned.etag == file.etag() && planned.size_bytes == file.size_bytes());
  };
  earlier_.resize(files_.size());
  int64_t total = 0, kept = 0;
  DiskUse use;
  for (size_t i = 0; i < files_.size(); ++i) {
    const PlannedFile& planned = plan_.files[i];
    const std::string path = absl::StrCat(folder_, "/files/", planned.path);
    int64_t size = 0;
    CacheFile present;
    if (const auto found = here.find(planned.path);
        found != here.end() && may_be(planned, found->second) &&
        ModifyTimeNanos(path, &size) == found->second.modify_time_nanos() &&
        size == found->second.size_bytes()) {
      present = found->second;
    } else if (const auto old = known.find(planned.path);
               old != known.end() && may_be(planned, old->second)) {
      TANDEM_RETURN_IF_ERROR(MakeParent(path));
      unlink(path.c_str());
      if (link(tools.cache->PathOf(*known_, old->second).c_str(), path.c_str()) == 0) present = old->second;
    }
    // A listing's sizes are untrusted.
    const int64_t bytes = planned.size_bytes >= 0 ? planned.size_bytes : present.size_bytes();
    total += std::min(bytes, std::numeric_limits<int64_t>::max() - total);
    use.Add(planned.path, bytes);
    if (present.sha256().empty() || planned.size_bytes < 0) {
      missing_.push_back(i);
      if (!present.sha256().empty()) earlier_[i] = std::move(present);
    } else {
      files_[i] = std::move(present);
      kept += bytes;
    }
  }
  const bool has_listing = plan_.files.empty() || plan_.files.front().size_bytes >= 0;
  bytes_total_ = has_listing ? total : 0;
  bytes_done_ = kept;
  files_done_ = static_cast<int64_t>(files_.size() - missing_.size());
  // Reserve all room at once, so that a fetch without enough room does not start.
  return tools.cache->Reserve(key_, use.bytes());
}

absl::StatusOr<std::optional<CacheEntry>> FetchItem::FetchFile(const FetchTools& tools, size_t index) {
  const PlannedFile& planned = plan_.files[missing_[index]];
  absl::StatusOr<std::optional<CacheFile>> file = DownloadFile(tools, missing_[index]);
  if (!file.ok()) {
    if (!known_.has_value() || plan_.folder || GetReason(file.status()) != kOriginUnreachable)
      return file.status();
    spdlog::warn("cannot check whether the file has changed: {}; using the cached copy",
                 std::string(file.status().message()));
    return known_;
  }
  ++files_done_;
  CacheFile& written = files_[missing_[index]];
  if (!file->has_value() && !plan_.folder) return known_;
  if (!file->has_value()) {
    // The server confirmed the file of an earlier fetch.
    written = *earlier_[missing_[index]];
    bytes_done_ += written.size_bytes();
    return std::optional<CacheEntry>();
  }
  written = **std::move(file);
  written.set_path(planned.path);
  if (plan_.folder) {
    if (written.etag().empty()) written.set_etag(planned.etag);
    int64_t size = 0;
    written.set_modify_time_nanos(ModifyTimeNanos(absl::StrCat(folder_, "/files/", planned.path), &size));
    Note(tools, written);
  }
  return std::optional<CacheEntry>();
}

absl::StatusOr<std::optional<CacheFile>> FetchItem::DownloadFile(const FetchTools& tools, size_t index) {
  const PlannedFile& planned = plan_.files[index];
  DownloadRequest request;
  request.path = absl::StrCat(folder_, "/files/", planned.path);
  TANDEM_RETURN_IF_ERROR(MakeParent(request.path));
  if (plan_.folder) {
    // PrepareFolder reserved the listed or the earlier size. The file may be larger now.
    if (earlier_[index].has_value()) request.known = &*earlier_[index];
    request.reserved = planned.size_bytes >= 0       ? planned.size_bytes
                       : earlier_[index].has_value() ? earlier_[index]->size_bytes()
                                                     : 0;
  } else {
    request.sha256 = url_.sha256;
    if (known_.has_value()) request.known = &known_->files(0);
  }
  int64_t reported = 0;
  DownloadContext context;
  context.env = tools.env;
  context.reserve = [&](int64_t bytes) { return tools.cache->Reserve(key_, bytes); };
  context.sleep = tools.sleep;
  context.progress = [&](int64_t done, int64_t total) {
    bytes_done_ += done - reported;
    reported = done;
    if (!plan_.folder) bytes_total_ = total;
  };
  TANDEM_ASSIGN_OR_RETURN(const FetchPlan::Origins origins, plan_.origins_of(planned));
  absl::StatusOr<std::optional<CacheFile>> file =
      absl::InternalError("cannot fetch a file without an address");
  std::vector<std::string> errors;
  for (size_t i = 0; i < origins.size(); ++i) {
    RetryPolicy retry = tools.retry;
    if (i + 1 < origins.size()) retry.attempts = std::min(retry.attempts, kTriesBeforeNext);
    file = Download(*origins[i], request, retry, context);
    if (file.ok() || absl::IsCancelled(file.status()) || absl::IsResourceExhausted(file.status()))
      return file;
    errors.emplace_back(file.status().message());
  }
  if (errors.size() < 2) return file;
  return WithReason(absl::Status(file.status().code(), absl::StrJoin(errors, "; and ")),
                    GetReason(file.status()));
}

// Helps another fetch after a crash. A lost note does no harm.
void FetchItem::Note(const FetchTools& tools, const CacheFile& file) {
  std::string line;
  if (!google::protobuf::util::MessageToJsonString(file, &line).ok()) return;
  MutexLock lock(&log_mutex_);
  const std::string path = folder_ + kNotes;
  absl::StatusOr<std::unique_ptr<WritableFile>> notes = tools.env->AppendToFile(path);
  if (absl::IsNotFound(notes.status())) notes = tools.env->CreateFile(path);
  if (notes.ok()) (*notes)->Append(line + "\n").IgnoreError();
}

absl::StatusOr<CacheEntry> FetchItem::Finish(const FetchTools& tools) {
  CacheEntry entry;
  entry.set_url(url_.shown);
  entry.set_url_sha256(url_sha256_);
  entry.set_folder(plan_.folder);
  for (CacheFile& file : files_) *entry.add_files() = std::move(file);
  entry.set_sha256(entry.files(0).sha256());
  if (entry.folder()) {
    TANDEM_ASSIGN_OR_RETURN(std::string digest, Sha256Of(ListingOf(entry)));
    if (!url_.sha256.empty() && url_.sha256 != digest) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is ", url_.shown, ", but its list of files and checksums has the SHA-256 ", digest, ", not ",
          url_.sha256, " as required: the files were changed; give the new #sha256=, or leave it out"));
    }
    entry.set_sha256(std::move(digest));
  }
  unlink((folder_ + kNotes).c_str());
  TANDEM_ASSIGN_OR_RETURN(CacheEntry committed, tools.cache->Commit(key_, std::move(entry)));
  spdlog::info("fetched url={} bytes={} files={}", url_.shown, committed.size_bytes(),
               committed.files_size());
  folder_.clear();
  return committed;
}

void FetchItem::Leave(Cache* cache) {
  if (!folder_.empty()) cache->Leave(key_);
  // The outcome may be kept for long, and needs none of this.
  plan_ = FetchPlan();
  known_.reset();
  missing_ = {};
  earlier_ = {};
  files_ = {};
}

}  // namespace tandem
