#include "engine/base/env.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

absl::Status SystemError(absl::string_view action, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", action, " ", path));
}

class RealFile final : public WritableFile {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~RealFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t written = ::write(fd_, data.data(), data.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        return SystemError("write", path_);
      }
      data.remove_prefix(written);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (::fsync(fd_) != 0) return SystemError("sync", path_);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (::close(std::exchange(fd_, -1)) != 0) return SystemError("close", path_);
    return absl::OkStatus();
  }

 private:
  int fd_;
  const std::string path_;
};

class RealEnv final : public Env {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return SystemError("create", path);
    return std::make_unique<RealFile>(fd, path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivateFile(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError("remove", path);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return SystemError("create", path);
    return std::make_unique<RealFile>(fd, path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) return SystemError("open", path);
    return std::make_unique<RealFile>(fd, path);
  }

  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return SystemError("open", path);
    std::string content;
    char buffer[1 << 16];
    while (true) {
      const ssize_t count = ::read(fd, buffer, sizeof(buffer));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        absl::Status status = SystemError("read", path);
        ::close(fd);
        return status;
      }
      if (count == 0) break;
      content.append(buffer, count);
    }
    ::close(fd);
    return content;
  }

  absl::Status RenameFile(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0)
      return SystemError(absl::StrCat("rename ", from, " to"), to);
    return absl::OkStatus();
  }

  absl::Status RemoveFile(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return SystemError("remove", path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) override {
    DIR* const folder = ::opendir(path.c_str());
    if (folder == nullptr) return SystemError("list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(folder)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const absl::Status status = errno == 0 ? absl::OkStatus() : SystemError("list", path);
    ::closedir(folder);
    if (!status.ok()) return status;
    return names;
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return SystemError("open", path);
    absl::Status status;
    if (::fsync(fd) != 0) status = SystemError("sync", path);
    ::close(fd);
    return status;
  }
};

absl::Status WriteTemporary(Env* env, const std::string& path,
                            const std::function<absl::Status(WritableFile&)>& write,
                            const AtomicWrite& options) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          options.is_private ? env->CreatePrivateFile(path) : env->CreateFile(path));
  TANDEM_RETURN_IF_ERROR(write(*file));
  if (options.durable != AtomicWrite::Durable::kNothing) TANDEM_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

Env* Env::Real() {
  static RealEnv* const env = new RealEnv;
  return env;
}

absl::Status WriteFileAtomically(Env* env, const std::string& path,
                                 const std::function<absl::Status(WritableFile&)>& write,
                                 const AtomicWrite& options) {
  const std::string temporary = absl::StrCat(path, kUnfinishedEnding);
  absl::Status status = WriteTemporary(env, temporary, write, options);
  if (status.ok()) status = env->RenameFile(temporary, path);
  if (!status.ok()) {
    // The first error is reported. The next attempt replaces a temporary file that remains.
    env->RemoveFile(temporary).IgnoreError();
    return status;
  }
  if (options.durable != AtomicWrite::Durable::kContentAndName) return absl::OkStatus();
  return env->SyncDirectory(ParentFolder(path));
}

std::string ContentOrEmpty(const std::string& path) { return Env::Real()->ReadFile(path).value_or(""); }

std::string ParentFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status EnsureOwnerFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return SystemError("make the folder", path);
}

}  // namespace tandem
