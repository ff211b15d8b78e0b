#include "server/datasets/upload_folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/datasets/upload_path.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileDigestBytes = 32;
// The most files that are synced together: one sync of the disk's journal serves many small files.
constexpr size_t kMaxPending = 256;
// The folders that an upload may have in addition to one folder per file. A path may have this depth.
constexpr int64_t kFoldersBeside = 31;

// Returns the file's size; 0 if no such file exists.
int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// Returns the number of folders of `path` that `last` does not have. Paths come in byte order, and so all
// files of a folder follow each other. The sum over all paths is the number of folders.
int64_t NewFolders(absl::string_view last, absl::string_view path) {
  const size_t same = std::mismatch(last.begin(), last.end(), path.begin(), path.end()).second - path.begin();
  return std::count(path.begin() + same, path.end(), '/');
}

}  // namespace

absl::StatusOr<std::unique_ptr<UploadFolder>> UploadFolder::Create(Env* env, const std::string& folder,
                                                                   const v1::Upload& declared) {
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(folder));
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(FilesFolder(folder)));
  const auto write = [&](const char* name, const std::string& content) {
    return WriteFileAtomically(env, absl::StrCat(folder, "/", name),
                               [&](WritableFile& file) { return file.Append(content); });
  };
  TANDEM_RETURN_IF_ERROR(write("received", ""));
  // Write "upload" last: a folder without this file holds no upload.
  TANDEM_RETURN_IF_ERROR(write("upload", declared.SerializeAsString()));
  TANDEM_RETURN_IF_ERROR(env->SyncDirectory(fs::path(folder).parent_path().string()));
  return Open(env, folder);
}

absl::StatusOr<std::unique_ptr<UploadFolder>> UploadFolder::Open(Env* env, const std::string& folder) {
  std::unique_ptr<UploadFolder> upload(new UploadFolder(env, folder));
  TANDEM_ASSIGN_OR_RETURN(upload->declared_, Declared(env, folder));
  TANDEM_RETURN_IF_ERROR(upload->Load());
  return upload;
}

absl::StatusOr<v1::Upload> UploadFolder::Declared(Env* env, const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/upload");
  TANDEM_ASSIGN_OR_RETURN(const std::string content, env->ReadFile(path));
  v1::Upload declared;
  if (!declared.ParseFromString(content))
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": its content is damaged"));
  return declared;
}

absl::Status UploadFolder::Load() {
  current_.reset();
  pending_.clear();
  unsynced_folders_.clear();
  unsynced_bytes_ = 0;
  files_ = bytes_ = folders_ = 0;
  last_path_.clear();
  manifest_ = Sha256();
  whole_ = false;
  TANDEM_RETURN_IF_ERROR(ReadReceived());
  RemoveStalePartials();
  return files_ == declared_.files() ? CheckManifest() : absl::OkStatus();
}

absl::Status UploadFolder::ReadReceived() {
  // Line by line, because the file of a large upload may be larger than the memory.
  const std::string path = Path("received");
  std::ifstream received(path, std::ios::binary);
  if (!received) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  int64_t end = 0;
  std::string line;
  // The process may have died while it wrote the last line, which then has no end.
  while (std::getline(received, line) && !received.eof()) {
    end += static_cast<int64_t>(line.size()) + 1;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    int64_t size = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &size)) {
      return absl::DataLossError(absl::StrCat("cannot read ", path, ": it has a damaged line"));
    }
    Count(parts[0], size, parts[2]);
  }
  if (received.bad()) return absl::DataLossError(absl::StrCat("cannot read ", path));
  if (SizeOf(path) == end) return absl::OkStatus();
  std::error_code error;
  fs::resize_file(path, end, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot cut the last line of ", path));
}

void UploadFolder::RemoveStalePartials() {
  std::vector<std::string> stale;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    if (absl::StartsWith(entry->path().filename().string(), "partial-") && path != PartialPath()) {
      stale.push_back(path);
    }
  }
  // A file that cannot be removed does no harm.
  for (const std::string& path : stale) env_->RemoveFile(path).IgnoreError();
}

void UploadFolder::Count(const std::string& digest, int64_t size, const std::string& path) {
  manifest_.Add(absl::StrCat(digest, "  ", path, "\n"));
  ++files_;
  bytes_ += size;
  folders_ += NewFolders(last_path_, path);
  last_path_ = path;
}

absl::Status UploadFolder::CheckManifest() {
  TANDEM_ASSIGN_OR_RETURN(const std::string digest, manifest_.Finish());
  if (digest != absl::BytesToHexString(declared_.manifest_sha256()) || bytes_ != declared_.bytes()) {
    return absl::FailedPreconditionError(
        "cannot complete the upload: its files differ from the declared ones (manifest_sha256, bytes); "
        "create a new upload");
  }
  whole_ = true;
  return absl::OkStatus();
}

absl::Status UploadFolder::CheckHeader(const v1::UploadFile& file) const {
  FieldViolations violations;
  if (const absl::Status path = CheckUploadPath(file.path()); !path.ok()) {
    violations.Add("file.path", path.message());
  }
  if (file.sha256().size() != kFileDigestBytes) {
    violations.Add("file.sha256",
                   absl::StrCat("has ", file.sha256().size(), " bytes, not ", kFileDigestBytes));
  }
  if (file.size() < 0) violations.Add("file.size", absl::StrCat("is ", file.size()));
  int64_t bytes = bytes_, folders = folders_ + NewFolders(LastPath(), file.path());
  for (const Pending& pending : pending_) {
    bytes += pending.size;
    folders += pending.folders;
  }
  if (violations.empty()) {
    if (Files() >= declared_.files()) {
      violations.Add("file", absl::StrCat("is one file more than the upload's ", declared_.files()));
    } else if (file.size() > declared_.bytes() - bytes) {
      violations.Add("file.size",
                     absl::StrCat("is ", file.size(), ": with the files before it that is more than the ",
                                  declared_.bytes(), " bytes of the upload"));
    }
    if (Files() > 0 && file.path() <= LastPath()) {
      violations.Add("file.path",
                     absl::StrCat("is '", absl::CHexEscape(file.path()), "'; it must come after '",
                                  absl::CHexEscape(LastPath()), "' in byte order"));
    } else if (folders > declared_.files() + kFoldersBeside) {
      violations.Add("file.path", absl::StrCat("is '", absl::CHexEscape(file.path()), "', in folder ",
                                               folders, " of the upload; an upload of ", declared_.files(),
                                               " files may have at most ", declared_.files() + kFoldersBeside,
                                               " folders"));
    }
  }
  return violations.ToStatus();
}

absl::Status UploadFolder::Begin(const v1::UploadFile& file) {
  const auto elsewhere = [&](int64_t offset) {
    return absl::AbortedError(absl::StrCat("file.offset: is ", file.offset(),
                                           ", but the upload expects byte ", offset, " of its file ", Files(),
                                           "; GetUpload says where to continue"));
  };
  if (current_.has_value()) {
    // A new call may continue the file of a broken call.
    v1::UploadFile same = file;
    same.set_offset(current_->header.offset());
    if (same.SerializeAsString() != current_->header.SerializeAsString()) {
      return absl::AbortedError(absl::StrCat("file: starts before '",
                                             absl::CHexEscape(current_->header.path()),
                                             "' is complete; GetUpload says where to continue"));
    }
    return file.offset() == current_->offset ? absl::OkStatus() : elsewhere(current_->offset);
  }
  TANDEM_RETURN_IF_ERROR(CheckHeader(file));
  const std::string path = PartialPath();
  const int64_t there = SizeOf(path);
  Current current;
  current.header = file;
  if (file.offset() != 0) {
    if (file.offset() != there || there > file.size()) return elsewhere(there);
    std::ifstream begin(path, std::ios::binary);
    std::string buffer(kMaxUploadPiece, '\0');
    while (begin.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || begin.gcount() > 0) {
      current.digest.Add(absl::string_view(buffer).substr(0, begin.gcount()));
      current.offset += begin.gcount();
    }
    if (current.offset != there) return absl::InternalError(absl::StrCat("cannot read ", path));
    TANDEM_ASSIGN_OR_RETURN(current.file, env_->AppendToFile(path));
  } else {
    TANDEM_ASSIGN_OR_RETURN(current.file, env_->CreateFile(path));
  }
  current_ = std::move(current);
  return absl::OkStatus();
}

absl::Status UploadFolder::Take(const v1::UploadFilesRequest& piece) {
  const absl::Status status = TakePiece(piece);
  // After an error, the file on disk decides where the next call continues.
  if (!status.ok()) current_.reset();
  return status;
}

absl::Status UploadFolder::TakePiece(const v1::UploadFilesRequest& piece) {
  if (piece.data().size() > kMaxUploadPiece) {
    return FieldError("data", absl::StrCat("has ", piece.data().size(), " bytes; at most ", kMaxUploadPiece,
                                           " are allowed in one message"));
  }
  if (piece.has_file()) {
    TANDEM_RETURN_IF_ERROR(Begin(piece.file()));
  } else if (!current_.has_value()) {
    return piece.data().empty() ? absl::OkStatus() : FieldError("file", "is required where a file begins");
  }
  Current& current = *current_;
  const int64_t size = static_cast<int64_t>(piece.data().size());
  if (size > current.header.size() - current.offset) {
    return FieldError("data", absl::StrCat("ends beyond the ", current.header.size(), " bytes of '",
                                           absl::CHexEscape(current.header.path()), "'"));
  }
  TANDEM_RETURN_IF_ERROR(current.file->Append(piece.data()));
  current.digest.Add(piece.data());
  current.offset += size;
  unsynced_bytes_ += size;
  if (current.offset < current.header.size()) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(EndFile());
  return pending_.size() < kMaxPending ? absl::OkStatus() : SyncPending();
}

absl::Status UploadFolder::EndFile() {
  Current current = *std::move(current_);
  current_.reset();
  TANDEM_ASSIGN_OR_RETURN(const std::string digest, current.digest.Finish());
  const std::string& path = current.header.path();
  if (digest != absl::BytesToHexString(current.header.sha256())) {
    TANDEM_RETURN_IF_ERROR(env_->RemoveFile(PartialPath()));
    return absl::DataLossError(absl::StrCat(
        "file.sha256: '", absl::CHexEscape(path), "' arrived with the SHA-256 ", digest, ", not ",
        absl::BytesToHexString(current.header.sha256()), ", and was dropped; send it again"));
  }
  const std::string files = FilesFolder(folder_);
  std::string made = files;
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  unsynced_folders_.insert(files);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    absl::StrAppend(&made, "/", parts[i]);
    if (!unsynced_folders_.insert(made).second) continue;
    TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(made));
    std::error_code error;
    if (!fs::is_directory(made, error)) {
      return FieldError("file.path", absl::StrCat("is '", absl::CHexEscape(path), "', but '",
                                                  absl::CHexEscape(made.substr(files.size() + 1)),
                                                  "' is already a file of the upload"));
    }
  }
  TANDEM_RETURN_IF_ERROR(env_->RenameFile(PartialPath(), absl::StrCat(files, "/", path)));
  const int64_t folders = NewFolders(LastPath(), path);
  pending_.push_back({std::move(current.file), path, digest, current.header.size(), folders});
  return absl::OkStatus();
}

absl::Status UploadFolder::Sync() {
  if (current_.has_value()) {
    // Also sync an incomplete file, so that a client can continue it.
    const absl::Status synced = current_->file->Sync();
    if (!synced.ok()) {
      current_.reset();
      return synced;
    }
  }
  return SyncPending();
}

absl::Status UploadFolder::SyncPending() {
  unsynced_bytes_ = 0;
  if (pending_.empty()) return absl::OkStatus();
  const absl::Status synced = [&]() -> absl::Status {
    std::string lines;
    for (Pending& pending : pending_) {
      TANDEM_RETURN_IF_ERROR(pending.file->Sync());
      TANDEM_RETURN_IF_ERROR(pending.file->Close());
      absl::StrAppend(&lines, pending.digest, " ", pending.size, " ", pending.path, "\n");
    }
    for (const std::string& folder : unsynced_folders_) TANDEM_RETURN_IF_ERROR(env_->SyncDirectory(folder));
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> received,
                            env_->AppendToFile(Path("received")));
    TANDEM_RETURN_IF_ERROR(received->Append(lines));
    TANDEM_RETURN_IF_ERROR(received->Sync());
    return received->Close();
  }();
  if (!synced.ok()) {
    Load().IgnoreError();
    return synced;
  }
  for (const Pending& pending : pending_) Count(pending.digest, pending.size, pending.path);
  pending_.clear();
  unsynced_folders_.clear();
  return files_ == declared_.files() ? CheckManifest() : absl::OkStatus();
}

v1::Upload UploadFolder::Progress() const {
  v1::Upload upload = declared_;
  upload.set_files_received(files_);
  // With pending files, the first of them is complete, and its partial file is not the next one.
  const int64_t offset = pending_.empty() ? SizeOf(PartialPath()) : 0;
  upload.set_next_offset(offset);
  upload.set_bytes_received(bytes_ + offset);
  return upload;
}

}  // namespace tandem
