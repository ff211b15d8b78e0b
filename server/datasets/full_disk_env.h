#ifndef TANDEM_SERVER_DATASETS_FULL_DISK_ENV_H_
#define TANDEM_SERVER_DATASETS_FULL_DISK_ENV_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"

namespace tandem {

// For tests: the machine's file system with `left` bytes of free space. As on a real disk, a failing write
// may write a part of its bytes. Not thread-safe.
class FullDiskEnv : public Env {
 public:
  int64_t left = int64_t{1} << 40;

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    return Wrap(Env::Real()->CreateFile(path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivateFile(const std::string& path) override {
    return Wrap(Env::Real()->CreatePrivateFile(path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) override {
    return Wrap(Env::Real()->AppendToFile(path));
  }
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    return Env::Real()->ReadFile(path);
  }
  absl::Status RenameFile(const std::string& from, const std::string& to) override {
    return Env::Real()->RenameFile(from, to);
  }
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) override {
    return Env::Real()->ListFolder(path);
  }
  absl::Status RemoveFile(const std::string& path) override { return Env::Real()->RemoveFile(path); }
  absl::Status SyncDirectory(const std::string& path) override { return Env::Real()->SyncDirectory(path); }

 private:
  class File : public WritableFile {
   public:
    File(FullDiskEnv* env, std::unique_ptr<WritableFile> file) : env_(env), file_(std::move(file)) {}
    absl::Status Append(absl::string_view data) override {
      const int64_t fits = std::min<int64_t>(env_->left, static_cast<int64_t>(data.size()));
      env_->left -= fits;
      const absl::Status written = file_->Append(data.substr(0, fits));
      if (!written.ok() || fits == static_cast<int64_t>(data.size())) return written;
      return absl::ResourceExhaustedError("no space left on device");
    }
    absl::Status Sync() override { return file_->Sync(); }
    absl::Status Close() override { return file_->Close(); }

   private:
    FullDiskEnv* const env_;
    const std::unique_ptr<WritableFile> file_;
  };

  absl::StatusOr<std::unique_ptr<WritableFile>> Wrap(absl::StatusOr<std::unique_ptr<WritableFile>> file) {
    if (!file.ok()) return file.status();
    return std::make_unique<File>(this, *std::move(file));
  }
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_FULL_DISK_ENV_H_
