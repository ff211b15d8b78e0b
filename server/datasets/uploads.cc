#include "server/datasets/uploads.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/datasets/upload_path.h"
#include "server/store/timestamps.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::TimeUtil;

constexpr size_t kDigestBytes = 32;
constexpr int64_t kMostFiles = 50'000'000;
// After this many bytes, sync them and check the disk's free space again.
constexpr int64_t kBytesBetweenSyncs = int64_t{64} << 20;
constexpr absl::Duration kSweepInterval = absl::Minutes(10);
// After a daemon's start, even an expired upload stays this long.
constexpr absl::Duration kGraceAtStart = absl::Hours(1);
// The suffix of a folder that is being removed.
constexpr char kRemoved[] = ".removed";
// The prefix of uploads' names.
constexpr char kNames[] = "uploads/";

std::string NewId() {
  absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<uint64_t>(random));
}

bool IsId(const std::string& id) {
  return id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

absl::Status NoSuchUpload(const std::string& id) {
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no upload \"uploads/", absl::CHexEscape(id.substr(0, 100)),
                                       "\"; it may have expired")),
      "UPLOAD_NOT_FOUND");
}

absl::Status CheckDeclaration(const v1::Upload& wanted) {
  FieldViolations violations;
  if (wanted.manifest_sha256().size() != kDigestBytes) {
    violations.Add("upload.manifest_sha256",
                   absl::StrCat("has ", wanted.manifest_sha256().size(), " bytes, not ", kDigestBytes));
  }
  if (wanted.files() < 1 || wanted.files() > kMostFiles) {
    violations.Add("upload.files",
                   absl::StrCat("is ", wanted.files(), "; it must be from 1 to ", kMostFiles));
  }
  if (wanted.bytes() < 0) violations.Add("upload.bytes", absl::StrCat("is ", wanted.bytes()));
  return violations.ToStatus();
}

// Returns the parts of a declaration that are kept.
v1::Upload Declare(const std::string& id, const v1::Upload& wanted, absl::Time now) {
  v1::Upload declared;
  declared.set_name(absl::StrCat(kNames, id));
  declared.set_manifest_sha256(wanted.manifest_sha256());
  declared.set_files(wanted.files());
  declared.set_bytes(wanted.bytes());
  declared.set_user(wanted.user());
  *declared.mutable_create_time() = TimestampOf(now);
  return declared;
}

std::string IdOf(const v1::Upload& declared) {
  return std::string(absl::StripPrefix(declared.name(), kNames));
}

bool IsOfTheSameFiles(const v1::Upload& a, const v1::Upload& b) {
  return a.manifest_sha256() == b.manifest_sha256() && a.files() == b.files() && a.bytes() == b.bytes() &&
         a.user() == b.user();
}

absl::Status RemoveByTheSystem(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  return error ? absl::Status(absl::ErrnoToStatusCode(error.value()), error.message()) : absl::OkStatus();
}

// Returns the time of the last write in an upload's folder; the infinite past if the folder is empty.
absl::Time LastActive(const std::string& folder) {
  absl::Time last = absl::InfinitePast();
  const auto look = [&](const std::string& path) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0) last = std::max(last, absl::TimeFromTimespec(info.st_mtim));
  };
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    look(entry->path().string());
  }
  return last;
}

}  // namespace

Uploads::Uploads(Options options, Env* env, const Clock* clock)
    : options_(std::move(options)), env_(env), clock_(clock) {}

absl::StatusOr<std::unique_ptr<Uploads>> Uploads::Open(Options options, Env* env, const Clock* clock,
                                                       std::map<std::string, Owned> owned) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (!error) fs::permissions(options.folder, fs::perms::owner_all, error);
  // Other code compares paths with this folder.
  if (!error) options.folder = fs::canonical(options.folder, error).string();
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make the folder ", options.folder));
  }
  std::unique_ptr<Uploads> uploads(new Uploads(std::move(options), env, clock));
  std::vector<std::string> ids;
  for (fs::directory_iterator entry(uploads->options_.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ids.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read ", uploads->options_.folder));
  }
  for (const std::string& id : ids) {
    if (IsId(id) && !owned.contains(id)) uploads->Restore(id);
    // An earlier removal was interrupted or failed.
    if (absl::EndsWith(id, kRemoved) && IsId(std::string(absl::StripSuffix(id, kRemoved)))) {
      uploads->RemoveAll(uploads->FolderOf(id));
    }
  }
  for (auto& [id, set] : owned) {
    const absl::StatusOr<v1::Upload> declared = UploadFolder::Declared(env, uploads->FolderOf(id));
    if (declared.ok()) set.bytes = UploadFolder::BytesOnDisk(*declared);
  }
  {
    MutexLock lock(&uploads->mutex_);
    uploads->owned_ = std::move(owned);
  }
  uploads->RemoveExpired();
  uploads->sweeper_ = std::thread([self = uploads.get()] { self->Sweep(); });
  return uploads;
}

Uploads::~Uploads() {
  {
    MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (sweeper_.joinable()) sweeper_.join();
}

void Uploads::Sweep() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), kSweepInterval)) return;
    }
    RemoveExpired();
  }
}

void Uploads::Restore(const std::string& id) {
  absl::StatusOr<std::unique_ptr<UploadFolder>> files = UploadFolder::Open(env_, FolderOf(id));
  if (!files.ok()) {
    if (options_.restored != absl::InfinitePast() && IsFromBeforeRestoration(LastActive(FolderOf(id)))) {
      MutexLock lock(&mutex_);
      unreadable_.push_back(id);
      return;
    }
    // Its creation was interrupted, or nobody can use its files.
    if (absl::IsNotFound(files.status()) || absl::IsDataLoss(files.status()) ||
        absl::IsFailedPrecondition(files.status())) {
      RemoveFolder(id);
    }
    return;
  }
  auto entry = std::make_shared<Entry>();
  {
    MutexLock lock(&entry->mutex);
    entry->declared = (*files)->Progress();
    SetReceived(entry->declared, *entry);
    entry->files = *std::move(files);
    entry->state = State::kOpen;
    // The clock may be ahead. Leave clients time to continue the upload.
    const absl::Duration most_age = options_.expiry - std::min(kGraceAtStart, options_.expiry / 2);
    const absl::Duration age =
        std::clamp(clock_->Now() - LastActive(FolderOf(id)), absl::ZeroDuration(), most_age);
    entry->active = ElapsedMicros() - absl::ToInt64Microseconds(age);
    entry->stays = IsFromBeforeRestoration(TimeOf(entry->declared.create_time()));
  }
  MutexLock lock(&mutex_);
  uploads_.emplace(id, std::move(entry));
}

absl::StatusOr<v1::Upload> Uploads::Create(const v1::Upload& wanted, const Allow& allow) {
  TANDEM_RETURN_IF_ERROR(CheckDeclaration(wanted));
  while (true) {
    RemoveExpired();
    TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, FindOrMake(wanted, allow));
    entry->active = ElapsedMicros();
    MutexLock lock(&entry->mutex);
    // The upload was removed or claimed since, or its creation failed.
    if (entry->state != State::kOpen) continue;
    absl::StatusOr<v1::Upload> upload = Progress(IdOf(entry->declared), *entry);
    // If the state changed, the files differed from the declaration; create a new upload.
    if (entry->state == State::kOpen) return upload;
  }
}

absl::StatusOr<std::shared_ptr<Uploads::Entry>> Uploads::FindOrMake(const v1::Upload& wanted,
                                                                    const Allow& allow) {
  const auto made = std::make_shared<Entry>();
  const std::string id = NewId();
  made->declared = Declare(id, wanted, clock_->Now());
  made->active = ElapsedMicros();
  absl::Status status;
  {
    // Calls that find `made` block until its folder exists. Other calls do not block.
    MutexLock making(&made->mutex);
    TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, FindOrAdd(made, allow));
    if (entry != made) return entry;
    absl::StatusOr<std::unique_ptr<UploadFolder>> files =
        UploadFolder::Create(env_, FolderOf(id), made->declared);
    status = files.status();
    if (status.ok()) made->files = *std::move(files);
    made->state = status.ok() ? State::kOpen : State::kGone;
  }
  if (status.ok()) return made;
  Forget(id);
  return status;
}

absl::StatusOr<std::shared_ptr<Uploads::Entry>> Uploads::FindOrAdd(const std::shared_ptr<Entry>& made,
                                                                   const Allow& allow) {
  const v1::Upload& wanted = made->declared;
  MutexLock lock(&mutex_);
  for (const auto& [id, entry] : uploads_) {
    const State state = entry->state;
    const bool goes_on = state == State::kOpen || state == State::kMaking;
    if (goes_on && IsOfTheSameFiles(entry->declared, wanted)) return entry;
  }
  TANDEM_RETURN_IF_ERROR(CheckSpace(wanted));
  if (allow != nullptr) TANDEM_RETURN_IF_ERROR(allow(BytesOfLocked(wanted.user())));
  uploads_.emplace(IdOf(wanted), made);
  return made;
}

absl::StatusOr<std::shared_ptr<Uploads::Entry>> Uploads::Find(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return NoSuchUpload(id);
  return found->second;
}

absl::StatusOr<std::string> Uploads::OwnerOf(const std::string& id) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(id));
  return entry->declared.user();
}

absl::Status Uploads::Sync(Entry& entry) {
  const absl::Status synced = entry.files->Sync();
  if (absl::IsFailedPrecondition(synced)) entry.state = State::kGone;
  SetReceived(entry.files->Progress(), entry);
  return synced;
}

void Uploads::SetReceived(const v1::Upload& progress, Entry& entry) {
  entry.bytes_received = progress.bytes_received();
  entry.files_received = progress.files_received();
}

absl::StatusOr<v1::Upload> Uploads::Progress(const std::string& id, Entry& entry) {
  if (entry.state != State::kOpen) return NoSuchUpload(id);
  TANDEM_RETURN_IF_ERROR(Sync(entry));
  v1::Upload upload = entry.files->Progress();
  if (!entry.stays) {
    const absl::Duration left = absl::Microseconds(entry.active - ElapsedMicros()) + options_.expiry;
    *upload.mutable_expire_time() = TimeUtil::SecondsToTimestamp(absl::ToUnixSeconds(clock_->Now() + left));
  }
  return upload;
}

absl::StatusOr<v1::Upload> Uploads::Get(const std::string& id) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(id));
  MutexLock lock(&entry->mutex);
  return Progress(id, *entry);
}

std::vector<v1::Upload> Uploads::List() {
  std::map<std::string, std::shared_ptr<Entry>> entries;
  {
    MutexLock lock(&mutex_);
    entries = uploads_;
  }
  std::vector<v1::Upload> uploads;
  for (const auto& [id, entry] : entries) {
    if (entry->state == State::kMaking) continue;
    MutexLock lock(&entry->mutex);
    absl::StatusOr<v1::Upload> upload = Progress(id, *entry);
    if (upload.ok()) uploads.push_back(*std::move(upload));
  }
  std::sort(uploads.begin(), uploads.end(), [](const v1::Upload& a, const v1::Upload& b) {
    return TimeUtil::TimestampToMicroseconds(a.create_time()) <
           TimeUtil::TimestampToMicroseconds(b.create_time());
  });
  return uploads;
}

std::vector<v1::Upload> Uploads::FromBeforeRestoration() {
  std::vector<v1::Upload> found = List();
  found.erase(std::remove_if(found.begin(), found.end(),
                             [](const v1::Upload& upload) { return upload.has_expire_time(); }),
              found.end());
  return found;
}

std::vector<std::string> Uploads::Unreadable() {
  MutexLock lock(&mutex_);
  return unreadable_;
}

void Uploads::Forget(const std::string& id) {
  {
    MutexLock lock(&mutex_);
    uploads_.erase(id);
  }
  RemoveFolder(id);
}

absl::Status Uploads::Delete(const std::string& id) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(id));
  {
    MutexLock lock(&entry->mutex);
    if (entry->state != State::kOpen) return NoSuchUpload(id);
    entry->state = State::kGone;
  }
  Forget(id);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Uploads::Call>> Uploads::Begin(const std::string& id) {
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<Entry> entry, Find(id));
  int64_t number = 0;
  {
    MutexLock lock(&entry->mutex);
    if (entry->state != State::kOpen) return NoSuchUpload(id);
    number = ++entry->call;
    entry->active = ElapsedMicros();
  }
  return std::unique_ptr<Call>(new Call(this, id, std::move(entry), number));
}

absl::Status Uploads::Call::CheckGoesOn() {
  if (entry_->state != State::kOpen) return NoSuchUpload(id_);
  if (entry_->call == number_) return absl::OkStatus();
  return WithReason(absl::AbortedError("cannot continue the upload: another call took it over"),
                    "UPLOAD_TAKEN_OVER");
}

absl::Status Uploads::Call::Take(const v1::UploadFilesRequest& piece) {
  {
    MutexLock lock(&entry_->mutex);
    TANDEM_RETURN_IF_ERROR(CheckGoesOn());
    entry_->active = uploads_->ElapsedMicros();
    const absl::Status taken = entry_->files->Take(piece);
    if (absl::IsFailedPrecondition(taken)) entry_->state = State::kGone;
    TANDEM_RETURN_IF_ERROR(taken);
    if (entry_->files->unsynced_bytes() >= kBytesBetweenSyncs)
      TANDEM_RETURN_IF_ERROR(uploads_->Sync(*entry_));
  }
  unchecked_bytes_ += static_cast<int64_t>(piece.data().size());
  if (piece.has_file()) {
    const std::string& path = piece.file().path();
    unchecked_bytes_ += kBlockBytes * (1 + std::count(path.begin(), path.end(), '/'));
  }
  if (unchecked_bytes_ < kBytesBetweenSyncs) return absl::OkStatus();
  unchecked_bytes_ = 0;
  return CheckFree();
}

absl::StatusOr<v1::Upload> Uploads::Call::Finish() {
  absl::StatusOr<v1::Upload> upload;
  bool gone = false;
  {
    MutexLock lock(&entry_->mutex);
    TANDEM_RETURN_IF_ERROR(CheckGoesOn());
    entry_->active = uploads_->ElapsedMicros();
    upload = uploads_->Progress(id_, *entry_);
    gone = entry_->state == State::kGone;
  }
  if (gone) uploads_->Forget(id_);
  return upload;
}

absl::StatusOr<std::string> Uploads::FindFile(const std::string& id, const std::string& path) {
  const auto refuse = [&](const auto&... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("is '", kNames, id, "/", absl::CHexEscape(path.substr(0, 200)), "', but ", why...));
  };
  const absl::StatusOr<std::shared_ptr<Entry>> entry = Find(id);
  if (!entry.ok()) return refuse("there is no such upload; it may have expired; upload the file again");
  if (const absl::Status inside = CheckUploadPath(path); !inside.ok()) {
    return refuse("the file's path ", inside.message(), "; give a path of the upload");
  }
  MutexLock lock(&(*entry)->mutex);
  const absl::StatusOr<v1::Upload> upload = Progress(id, **entry);
  if (absl::IsNotFound(upload.status())) {
    return refuse("there is no such upload; it may have expired; upload the file again");
  }
  TANDEM_RETURN_IF_ERROR(upload.status());
  if (!(*entry)->files->whole()) {
    return refuse("only ", upload->files_received(), " of the upload's ", upload->files(),
                  " files have arrived (", upload->bytes_received(), " of ", upload->bytes(),
                  " bytes); send the others first");
  }
  std::string file = absl::StrCat(FilesFolder(id), "/", path);
  std::error_code error;
  if (fs::symlink_status(file, error).type() != fs::file_type::regular) {
    return refuse("the upload has no such file; give the path of a file of the upload");
  }
  (*entry)->active = ElapsedMicros();
  return file;
}

absl::StatusOr<v1::Upload> Uploads::Claim(const std::string& id) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(id));
  v1::Upload upload;
  {
    MutexLock lock(&entry->mutex);
    TANDEM_ASSIGN_OR_RETURN(upload, Progress(id, *entry));
    if (!entry->files->whole()) {
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat(
              "upload: only ", upload.files_received(), " of its ", upload.files(), " files have arrived (",
              upload.bytes_received(), " of ", upload.bytes(), " bytes); send the others first")),
          "UPLOAD_NOT_WHOLE");
    }
    entry->state = State::kClaimed;
  }
  MutexLock lock(&mutex_);
  uploads_.erase(id);
  claimed_.emplace(id, entry);
  owned_[id] = {UploadFolder::BytesOnDisk(upload), upload.user()};
  return upload;
}

void Uploads::GiveBack(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto claimed = claimed_.find(id);
  if (claimed == claimed_.end()) return;
  claimed->second->active = ElapsedMicros();
  claimed->second->state = State::kOpen;
  uploads_.insert(claimed_.extract(claimed));
  owned_.erase(id);
}

void Uploads::Keep(const std::string& id, const std::string& user) {
  MutexLock lock(&mutex_);
  if (claimed_.erase(id) > 0) owned_[id].user = user;
}

void Uploads::Remove(const std::string& id) {
  RemoveFolder(id);
  MutexLock lock(&mutex_);
  claimed_.erase(id);
  owned_.erase(id);
}

void Uploads::RemoveExpired() {
  const int64_t oldest = ElapsedMicros() - absl::ToInt64Microseconds(options_.expiry);
  std::map<std::string, std::shared_ptr<Entry>> stale;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, entry] : uploads_) {
      const State state = entry->state;
      // Do not block on an upload in creation, even if the clock jumps.
      const bool is_old = state != State::kMaking && !entry->stays && entry->active <= oldest;
      if (is_old || state == State::kGone) stale.emplace(id, entry);
    }
  }
  for (const auto& [id, entry] : stale) {
    {
      MutexLock lock(&entry->mutex);
      // A call may have arrived since.
      if (entry->state == State::kClaimed || (entry->state == State::kOpen && entry->active > oldest))
        continue;
      entry->state = State::kGone;
    }
    Forget(id);
  }
}

void Uploads::RemoveFolder(const std::string& id) {
  const std::string folder = FolderOf(id);
  const std::string removed = folder + kRemoved;
  // After the rename, the folder no longer looks like an upload, even if the removal stops halfway. The next
  // daemon completes the removal.
  if (env_->RenameFile(folder, removed).ok()) {
    env_->SyncDirectory(options_.folder).IgnoreError();
    RemoveAll(removed);
    return;
  }
  // Without this file, the folder holds no upload.
  env_->RemoveFile(folder + "/upload").IgnoreError();
  RemoveAll(folder);
}

void Uploads::RemoveAll(const std::string& folder) const {
  const absl::Status status =
      options_.remove_folder != nullptr ? options_.remove_folder(folder) : RemoveByTheSystem(folder);
  if (status.ok()) return;
  spdlog::error("cannot remove the rest of an upload, {}: {}; the next start of the daemon tries again",
                folder, std::string(status.message()));
}

}  // namespace tandem
