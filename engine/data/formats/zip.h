#ifndef TANDEM_ENGINE_DATA_FORMATS_ZIP_H_
#define TANDEM_ENGINE_DATA_FORMATS_ZIP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

// A zip archive (PKWARE's APPNOTE 6.3, with NumPy's 64-bit sizes), read with random access. Every error is
// INVALID_ARGUMENT and names the file. Not thread-safe.
class ZipFile {
 public:
  static absl::StatusOr<ZipFile> Open(const std::string& path);
  ZipFile(ZipFile&& other) noexcept;
  ZipFile& operator=(ZipFile&&) = delete;
  ~ZipFile();

  const std::vector<ZipMember>& members() const { return members_; }
  // Returns the first `most` bytes of a member, or the whole member if it is shorter.
  absl::StatusOr<std::string> Read(const ZipMember& member, int64_t most) const;
  // Reads a member's bytes, and passes them to `use` in pieces, in order. Returns the error of `use`. A fault
  // of the whole member, such as a wrong checksum, is returned after the last piece.
  absl::Status ReadPieces(const ZipMember& member,
                          absl::FunctionRef<absl::Status(absl::string_view)> use) const;

 private:
  ZipFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status ReadDirectory();
  // Returns the offset of a member's packed bytes.
  absl::StatusOr<int64_t> FindPacked(const ZipMember& member) const;
  // As ReadPieces for the first `most` bytes, fewer if the member is shorter.
  absl::Status ReadFirst(const ZipMember& member, int64_t most,
                         absl::FunctionRef<absl::Status(absl::string_view)> use) const;
  absl::Status Copy(int64_t begin, int64_t bytes,
                    absl::FunctionRef<absl::Status(absl::string_view)> use) const;
  absl::Status Inflate(const ZipMember& member, int64_t begin, int64_t bytes,
                       absl::FunctionRef<absl::Status(absl::string_view)> use) const;
  absl::StatusOr<std::string> ReadAt(int64_t offset, int64_t size) const;
  absl::Status Error(const std::string& what) const;

  const std::string path_;
  int fd_;
  int64_t file_bytes_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_ZIP_H_
