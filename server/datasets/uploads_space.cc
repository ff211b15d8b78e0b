// The part of Uploads that counts disk space.

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "server/datasets/uploads.h"
#include "server/store/scheduling_records.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string Shown(int64_t bytes) {
  if (bytes < (1 << 20)) return absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / (1 << 10));
  if (bytes < (1 << 30)) return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return absl::StrFormat("%.2f GiB", static_cast<double>(bytes) / (1 << 30));
}

absl::Status NoSpace(absl::string_view message, absl::string_view reason) {
  return WithReason(absl::ResourceExhaustedError(message), reason);
}

}  // namespace

absl::StatusOr<int64_t> Uploads::FreeBytes() const {
  if (options_.free_bytes != nullptr) return options_.free_bytes(options_.folder);
  std::error_code error;
  const fs::space_info space = fs::space(options_.folder, error);
  if (error)
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot read the free space of ", options_.folder));
  return static_cast<int64_t>(space.available);
}

absl::Status Uploads::CheckNumber(const std::string& user) {
  int64_t unfinished = 0, own = 0;
  for (const auto& [id, entry] : uploads_) {
    // Uploads from before a restoration do not count.
    if (entry->stays) continue;
    ++unfinished;
    own += entry->declared.user() == user ? 1 : 0;
  }
  const bool is_admin = user == kAdminUser;
  if (own >= (is_admin ? options_.most_uploads : options_.most_uploads_each)) {
    return NoSpace(absl::StrCat("cannot start another upload: \"", user, "\" has ", own,
                                " unfinished uploads, the most for one user; remove an upload ('tandem "
                                "datasets uploads --remove'), or wait until one expires"),
                   "TOO_MANY_UPLOADS");
  }
  if (!is_admin && unfinished >= options_.most_uploads) {
    return NoSpace(absl::StrCat("cannot start another upload: there are ", unfinished,
                                " unfinished uploads, the most that this daemon keeps; remove an upload "
                                "('tandem datasets uploads --remove'), or wait until one expires"),
                   "TOO_MANY_UPLOADS");
  }
  return absl::OkStatus();
}

absl::Status Uploads::CheckSpace(const v1::Upload& wanted) {
  const int64_t bytes = UploadFolder::BytesOnDisk(wanted);
  const std::string shown = absl::StrCat("upload.bytes: is ", wanted.bytes(), ", which take ", Shown(bytes),
                                         " in ", wanted.files(), wanted.files() == 1 ? " file" : " files");
  if (options_.most_bytes_each > 0 && bytes > options_.most_bytes_each) {
    return NoSpace(
        absl::StrCat(shown, "; it must be at most ", Shown(options_.most_bytes_each), " (--upload-limit)"),
        "UPLOAD_TOO_LARGE");
  }
  TANDEM_RETURN_IF_ERROR(CheckNumber(wanted.user()));
  int64_t used = 0, outstanding = 0;
  for (const auto& [id, owned] : owned_) used += owned.bytes;
  for (const auto& [id, entry] : uploads_) {
    used += UploadFolder::BytesOnDisk(entry->declared);
    outstanding += UploadFolder::BytesOnDisk(entry->declared) -
                   UploadFolder::BytesOnDisk(entry->bytes_received, entry->files_received);
  }
  if (options_.most_bytes > 0 && bytes > options_.most_bytes - used) {
    return NoSpace(absl::StrCat(shown, ", but ", Shown(used), " of the ", Shown(options_.most_bytes),
                                " for uploaded files are used (--upload-space); remove unused data sets"),
                   "UPLOAD_SPACE_EXHAUSTED");
  }
  TANDEM_ASSIGN_OR_RETURN(const int64_t free, FreeBytes());
  // The differences cannot overflow, even for a huge upload.
  if (bytes > free - outstanding - options_.least_free) {
    return NoSpace(absl::StrCat(shown, ", but the daemon's disk has ", Shown(free),
                                " free, of which other uploads need ", Shown(outstanding), " and ",
                                Shown(options_.least_free), " must stay free; make room"),
                   "DISK_FULL");
  }
  return absl::OkStatus();
}

int64_t Uploads::used_bytes() {
  MutexLock lock(&mutex_);
  int64_t used = 0;
  for (const auto& [id, owned] : owned_) used += owned.bytes;
  for (const auto& [id, entry] : uploads_) used += UploadFolder::BytesOnDisk(entry->declared);
  return used;
}

int64_t Uploads::BytesOf(const std::string& user) {
  MutexLock lock(&mutex_);
  return BytesOfLocked(user);
}

int64_t Uploads::BytesOfLocked(const std::string& user) const {
  int64_t used = 0;
  for (const auto& [id, owned] : owned_) {
    if (owned.user == user) used += owned.bytes;
  }
  for (const auto& [id, entry] : uploads_) {
    if (entry->declared.user() == user) used += UploadFolder::BytesOnDisk(entry->declared);
  }
  return used;
}

absl::Status Uploads::Call::CheckFree() const {
  TANDEM_ASSIGN_OR_RETURN(const int64_t free, uploads_->FreeBytes());
  if (free >= uploads_->options_.least_free) return absl::OkStatus();
  return NoSpace(absl::StrCat("cannot take more data: the daemon's disk has ", Shown(free), " free, and ",
                              Shown(uploads_->options_.least_free),
                              " must stay free; make room, then continue the upload"),
                 "DISK_FULL");
}

}  // namespace tandem
