#include "server/fetch/cache.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "server/store/reserved_room.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using internal::v1::CacheEntry;
using internal::v1::CacheFile;

// Bytes of the disk that the cache leaves free.
constexpr int64_t kLeftFree = int64_t{256} << 20;

int64_t ModifyTimeNanos(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec;
}

// Unique for each URL and content.
std::string IdOf(const CacheEntry& entry) {
  return absl::StrCat(entry.url_sha256().substr(0, 24), "-", entry.sha256().substr(0, 24));
}

int64_t DiskBytesOf(const CacheEntry& entry) {
  DiskUse use;
  for (const CacheFile& file : entry.files()) use.Add(file.path(), file.size_bytes());
  return use.bytes();
}

// Returns the DiskUse of all files and folders below a folder. Returns 0 if the folder surely has no files.
int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  bool has_files = false;
  std::error_code error;
  for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code ignored;
    const bool is_file = file->is_regular_file(ignored);
    const auto size = is_file ? file->file_size(ignored) : 0;
    bytes += kCacheBlockBytes + (ignored ? 0 : static_cast<int64_t>(size));
    has_files = has_files || is_file;
  }
  const bool unread = error && error != std::errc::no_such_file_or_directory;
  return has_files || unread ? std::max(bytes, kCacheBlockBytes) : 0;
}

absl::Time ModifyTime(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return absl::UnixEpoch();
  return absl::TimeFromTimespec(info.st_mtim);
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make the folder ", path, ": ", error.message()));
  return absl::OkStatus();
}

std::string Size(int64_t bytes) { return absl::StrFormat("%.1f MB", bytes / 1e6); }

absl::Status Full(const std::string& why) {
  return WithReason(absl::ResourceExhaustedError(why), "CACHE_FULL");
}

}  // namespace

void DiskUse::Add(absl::string_view path, int64_t size_bytes) {
  const auto first_other =
      std::mismatch(last_path_.begin(), last_path_.end(), path.begin(), path.end()).second;
  const int64_t blocks = (1 + std::count(first_other, path.end(), '/')) * kCacheBlockBytes;
  // Listed sizes are untrusted.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  bytes_ += std::min(blocks, kMost - bytes_);
  bytes_ += std::min(size_bytes, kMost - bytes_);
  last_path_ = std::string(path);
}

absl::StatusOr<std::unique_ptr<Cache>> Cache::Open(Options options) {
  std::unique_ptr<Cache> cache(new Cache(std::move(options)));
  TANDEM_RETURN_IF_ERROR(cache->Scan());
  return cache;
}

absl::Status Cache::Scan() {
  TANDEM_RETURN_IF_ERROR(MakeFolder(options_.folder + "/entries"));
  TANDEM_RETURN_IF_ERROR(MakeFolder(options_.folder + "/partial"));
  std::vector<std::string> broken;
  std::error_code error;
  MutexLock lock(&mutex_);
  for (fs::directory_iterator folder(options_.folder + "/entries", error), end; !error && folder != end;
       folder.increment(error)) {
    const std::string id = folder->path().filename().string();
    const absl::StatusOr<std::string> json = options_.env->ReadFile(folder->path().string() + "/entry.json");
    Entry entry;
    if (!json.ok() || !google::protobuf::util::JsonStringToMessage(*json, &entry.record).ok() ||
        IdOf(entry.record) != id) {
      broken.push_back(folder->path().string());
      continue;
    }
    entry.disk_bytes = DiskBytesOf(entry.record);
    entry.used = ModifyTime(folder->path().string() + "/used");
    entry.used_at =
        options_.clock->Elapsed() - std::max(options_.clock->Now() - entry.used, absl::ZeroDuration());
    entries_.emplace(id, std::move(entry));
  }
  for (fs::directory_iterator folder(options_.folder + "/partial", error), end; !error && folder != end;
       folder.increment(error)) {
    const std::string path = folder->path().string();
    const int64_t bytes = BytesIn(path);
    if (bytes == 0 || options_.clock->Now() - ModifyTime(path) > options_.keep_partial) {
      broken.push_back(path);
    } else {
      partials_[folder->path().filename().string()].bytes = bytes;
    }
  }
  for (const std::string& path : broken) fs::remove_all(path, error);
  return absl::OkStatus();
}

std::string Cache::PathOf(const CacheEntry& entry) const {
  return entry.folder() ? absl::StrCat(EntryFolder(IdOf(entry)), "/files") : PathOf(entry, entry.files(0));
}

std::string Cache::PathOf(const CacheEntry& entry, const CacheFile& file) const {
  return absl::StrCat(EntryFolder(IdOf(entry)), "/files/", file.path());
}

bool Cache::IsWhole(const CacheEntry& entry) const {
  for (const CacheFile& file : entry.files()) {
    struct stat info = {};
    if (stat(PathOf(entry, file).c_str(), &info) != 0 || info.st_size != file.size_bytes() ||
        ModifyTimeNanos(info) != file.modify_time_nanos()) {
      return false;
    }
  }
  return true;
}

std::optional<CacheEntry> Cache::Find(const std::string& url_sha256, const std::string& sha256) {
  std::optional<CacheEntry> found;
  std::string id;
  {
    MutexLock lock(&mutex_);
    int64_t newest = 0;
    for (const auto& [one, entry] : entries_) {
      const int64_t fetched =
          entry.record.fetch_time().seconds() * 1000000000 + entry.record.fetch_time().nanos();
      if (entry.record.url_sha256() != url_sha256 || (!sha256.empty() && entry.record.sha256() != sha256))
        continue;
      if (found.has_value() && fetched <= newest) continue;
      found = entry.record;
      newest = fetched;
      id = one;
    }
  }
  if (!found.has_value()) return std::nullopt;
  const bool whole = IsWhole(*found);
  MutexLock lock(&mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return std::nullopt;
  if (!whole) {
    spdlog::warn("cannot use the cached files of {}: they were changed or removed; dropping them",
                 found->url());
    Remove(id);
    return std::nullopt;
  }
  Touch(id, entry->second);
  return found;
}

absl::StatusOr<std::string> Cache::Begin(const std::string& key) {
  const std::string folder = PartialFolder(key);
  {
    MutexLock lock(&mutex_);
    Partial& partial = partials_[key];
    if (partial.active) return absl::InternalError("cannot fetch the same data twice at the same time");
    partial.active = true;
    partial.bytes = 0;
  }
  absl::Status made = MakeFolder(folder + "/files");
  if (!made.ok()) {
    Leave(key);
    return made;
  }
  return folder;
}

absl::Status Cache::Reserve(const std::string& key, int64_t bytes) {
  const int64_t free_bytes = ReservedRoom::AvailableBytes(options_.folder);
  if (free_bytes >= 0 && bytes > free_bytes - kLeftFree) {
    return Full(absl::StrCat("needs ", Size(bytes), ", but the disk of ", options_.folder, " has ",
                             Size(free_bytes), " free, of which ", Size(kLeftFree),
                             " must stay free; make room there"));
  }
  {
    MutexLock lock(&mutex_);
    if (bytes <= options_.most_bytes - UsedBytes()) {
      partials_[key].bytes += bytes;
      return absl::OkStatus();
    }
  }
  TANDEM_ASSIGN_OR_RETURN(const Needed needed, options_.needed());
  MutexLock lock(&mutex_);
  int64_t over = UsedBytes() + bytes - options_.most_bytes;
  int64_t removable_bytes = 0;
  std::vector<std::string> left;
  for (const auto& [one, partial] : partials_) {
    if (partial.active) continue;
    left.push_back(one);
    removable_bytes += partial.bytes;
  }
  struct Unused {
    absl::Duration used_at;
    absl::Time used;
    std::string id;
    bool operator<(const Unused& other) const {
      return std::tie(used_at, used, id) < std::tie(other.used_at, other.used, other.id);
    }
  };
  std::vector<Unused> unused;
  for (const auto& [id, entry] : entries_) {
    if (options_.clock->Elapsed() - entry.used_at < options_.keep_after_use ||
        needed.count({entry.record.url_sha256(), entry.record.sha256()}) > 0) {
      continue;
    }
    unused.push_back({entry.used_at, entry.used, id});
    removable_bytes += entry.disk_bytes;
  }
  if (over > removable_bytes) {
    return Full(absl::StrCat("needs ", Size(bytes), " more in the daemon's cache, but ",
                             Size(UsedBytes() - removable_bytes), " of its ", Size(options_.most_bytes),
                             " are needed by jobs and data sets, or were fetched or used just now; wait for "
                             "them, or start the daemon with a larger --cache-size"));
  }
  for (const std::string& one : left) {
    if (over <= 0) break;
    over -= partials_[one].bytes;
    std::error_code error;
    fs::remove_all(PartialFolder(one), error);
    partials_.erase(one);
  }
  std::sort(unused.begin(), unused.end());
  for (const auto& [used_at, used, id] : unused) {
    if (over <= 0) break;
    over -= entries_[id].disk_bytes;
    spdlog::info("made room in the cache: removed url={} bytes={}", entries_[id].record.url(),
                 entries_[id].record.size_bytes());
    Remove(id);
  }
  partials_[key].bytes += bytes;
  return absl::OkStatus();
}

absl::StatusOr<CacheEntry> Cache::Commit(const std::string& key, CacheEntry entry) {
  const std::string partial = PartialFolder(key);
  int64_t size = 0;
  for (CacheFile& file : *entry.mutable_files()) {
    struct stat info = {};
    const std::string path = absl::StrCat(partial, "/files/", file.path());
    if (stat(path.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot find ", path));
    file.set_modify_time_nanos(ModifyTimeNanos(info));
    size += file.size_bytes();
  }
  entry.set_size_bytes(size);
  const absl::Time now = options_.clock->Now();
  entry.mutable_fetch_time()->set_seconds(absl::ToUnixSeconds(now));
  entry.mutable_fetch_time()->set_nanos(static_cast<int32_t>(absl::ToUnixNanos(now) % 1000000000));
  const std::string id = IdOf(entry);
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(entry, &json).ok()) {
    return absl::InternalError("cannot write the record of the fetched data");
  }
  const auto write = [&json](WritableFile& file) { return file.Append(json); };
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(options_.env, partial + "/entry.json", write));
  TANDEM_RETURN_IF_ERROR(
      WriteFileAtomically(options_.env, partial + "/used", [](WritableFile&) { return absl::OkStatus(); }));
  MutexLock lock(&mutex_);
  // The same content was fetched before. Keep its files, because jobs may be reading them, and update their
  // record with the server's new answer.
  const auto present = entries_.find(id);
  std::error_code error;
  if (present != entries_.end() && IsWhole(present->second.record)) {
    for (int i = 0; i < entry.files_size(); ++i) {
      entry.mutable_files(i)->set_modify_time_nanos(present->second.record.files(i).modify_time_nanos());
    }
    if (google::protobuf::util::MessageToJsonString(entry, &(json = "")).ok()) {
      TANDEM_RETURN_IF_ERROR(WriteFileAtomically(options_.env, EntryFolder(id) + "/entry.json", write));
    }
    fs::remove_all(partial, error);
  } else {
    Remove(id);
    TANDEM_RETURN_IF_ERROR(options_.env->RenameFile(partial, EntryFolder(id)));
    TANDEM_RETURN_IF_ERROR(options_.env->SyncDirectory(options_.folder + "/entries"));
  }
  partials_.erase(key);
  Entry& kept = entries_[id];
  kept.record = entry;
  kept.disk_bytes = DiskBytesOf(entry);
  Touch(id, kept);
  return entry;
}

void Cache::Leave(const std::string& key) {
  const int64_t bytes = BytesIn(PartialFolder(key));
  std::error_code error;
  // The fetch is still active, so nobody else uses its folder.
  if (bytes == 0) fs::remove_all(PartialFolder(key), error);
  MutexLock lock(&mutex_);
  const auto partial = partials_.find(key);
  if (partial == partials_.end()) return;
  if (bytes == 0) {
    partials_.erase(partial);
    return;
  }
  partial->second.active = false;
  partial->second.bytes = bytes;
}

int64_t Cache::used_bytes() const {
  MutexLock lock(&mutex_);
  return UsedBytes();
}

int64_t Cache::UsedBytes() const {
  int64_t bytes = 0;
  for (const auto& [id, entry] : entries_) bytes += entry.disk_bytes;
  for (const auto& [key, partial] : partials_) bytes += partial.bytes;
  return bytes;
}

void Cache::Touch(const std::string& id, Entry& entry) {
  entry.used = options_.clock->Now();
  entry.used_at = options_.clock->Elapsed();
  const timespec now = absl::ToTimespec(entry.used);
  const timespec times[2] = {now, now};
  utimensat(AT_FDCWD, (EntryFolder(id) + "/used").c_str(), times, 0);
}

void Cache::Remove(const std::string& id) {
  std::error_code error;
  // Remove entry.json first: after a crash, the rest is no entry.
  fs::remove(EntryFolder(id) + "/entry.json", error);
  fs::remove_all(EntryFolder(id), error);
  entries_.erase(id);
}

}  // namespace tandem
