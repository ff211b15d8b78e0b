#include "engine/base/random_access_env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

class RealFile final : public RandomAccessFile {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~RealFile() override { ::close(fd_); }

  absl::StatusOr<int64_t> ReadAt(int64_t offset, int64_t size, char* to) const override {
    int64_t done = 0;
    while (done < size) {
      const ssize_t count = ::pread(fd_, to + done, size - done, offset + done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Error("read");
      if (count == 0) break;
      done += count;
    }
    return done;
  }

  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t count = ::pwrite(fd_, data.data(), data.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Error("write");
      data.remove_prefix(count);
      offset += count;
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(int64_t size) override {
    return ::ftruncate(fd_, size) == 0 ? absl::OkStatus() : Error("shorten");
  }

  // fdatasync also persists the file's size.
  absl::Status Sync() override { return ::fdatasync(fd_) == 0 ? absl::OkStatus() : Error("sync"); }

  absl::StatusOr<int64_t> Size() const override {
    struct stat info;
    if (::fstat(fd_, &info) != 0) return Error("look at");
    return info.st_size;
  }

 private:
  absl::Status Error(absl::string_view action) const {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", action, " ", path_));
  }

  const int fd_;
  const std::string path_;
};

class RealRandomAccessEnv final : public RandomAccessEnv {
 public:
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path,
                                                                     Open how) override {
    const int flags = how == Open::kReadOnly    ? O_RDONLY
                      : how == Open::kExisting  ? O_RDWR
                      : how == Open::kCreate    ? O_RDWR | O_CREAT
                      : how == Open::kCreateNew ? O_RDWR | O_CREAT | O_EXCL
                                                : O_RDWR | O_CREAT | O_TRUNC;
    // Opening a named pipe must not block.
    const int fd = ::open(path.c_str(), O_CLOEXEC | O_NONBLOCK | flags, 0600);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
    return std::make_unique<RealFile>(fd, path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    return Env::Real()->CreateFile(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivateFile(const std::string& path) override {
    return Env::Real()->CreatePrivateFile(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) override {
    return Env::Real()->AppendToFile(path);
  }
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    return Env::Real()->ReadFile(path);
  }
  absl::Status RenameFile(const std::string& from, const std::string& to) override {
    return Env::Real()->RenameFile(from, to);
  }
  absl::Status RemoveFile(const std::string& path) override { return Env::Real()->RemoveFile(path); }
  absl::Status SyncDirectory(const std::string& path) override { return Env::Real()->SyncDirectory(path); }
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) override {
    return Env::Real()->ListFolder(path);
  }
};

}  // namespace

RandomAccessEnv* RandomAccessEnv::Real() {
  static RealRandomAccessEnv* const env = new RealRandomAccessEnv;
  return env;
}

}  // namespace tandem
