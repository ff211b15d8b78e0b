#ifndef TANDEM_ENGINE_DATA_FORMATS_ZIP_H_
#define TANDEM_ENGINE_DATA_FORMATS_ZIP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// A file in a zip archive, from the archive's central directory.
struct ZipMember {
  std::string name;
  int method = 0;  // 0: stored, 8: deflated.
  uint32_t crc = 0;
  int64_t packed_bytes = 0;
  int64_t bytes = 0;
  int64_t header_at = 0;
};

// A zip archive (PKWARE's APPNOTE 6.3, with the 64-bit sizes that NumPy writes), read with random access.
// Every error is INVALID_ARGUMENT and names the file. Not thread-safe.
class ZipFile {
 public:
  static absl::StatusOr<ZipFile> Open(const std::string& path);
  ZipFile(ZipFile&& other) noexcept;
  ZipFile& operator=(ZipFile&&) = delete;
  ~ZipFile();

  const std::vector<ZipMember>& members() const { return members_; }
  // The first `most` bytes of a member, or all of it where it has no more. The checksum is compared where it
  // is read whole.
  absl::StatusOr<std::string> Read(const ZipMember& member, int64_t most) const;

 private:
  ZipFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status ReadDirectory();
  absl::StatusOr<std::string> ReadAt(int64_t offset, int64_t size) const;
  absl::Status Error(const std::string& what) const;

  const std::string path_;
  int fd_;
  int64_t file_bytes_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_ZIP_H_
