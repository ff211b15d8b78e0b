#ifndef TANDEM_ENGINE_DATA_FORMATS_ZIP_H_
#define TANDEM_ENGINE_DATA_FORMATS_ZIP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/unique_fd.h"

namespace tandem {

// A file in a zip archive, from the archive's central directory.
struct ZipMember {
  std::string name;
  int method = 0;  // 0: stored, 8: deflated.
  uint32_t crc = 0;
  int64_t packed_bytes = 0;
  int64_t bytes = 0;
  int64_t header_at = 0;
  bool is_link = false;  // A symbolic link. The content is its target.
};

// Reads a member of a zip archive from beginning to end. Not thread-safe.
class ZipReader {
 public:
  virtual ~ZipReader() = default;
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  // Reads up to `size` bytes, fewer only at the end. Returns their number. Checks the member's checksum when
  // the last byte is read.
  virtual absl::StatusOr<int64_t> Read(void* data, int64_t size) = 0;

 protected:
  ZipReader() = default;
};

// Returns whether a file that begins with these bytes is a zip archive.
bool IsZip(absl::string_view begin);

// A zip archive (PKWARE's APPNOTE 6.3, with NumPy's 64-bit sizes), read with random access. Every error is
// INVALID_ARGUMENT and names the file. Const functions are thread-safe.
class ZipFile {
 public:
  static absl::StatusOr<ZipFile> Open(const std::string& path);
  ZipFile(ZipFile&&) = default;
  ZipFile& operator=(ZipFile&&) = delete;

  const std::vector<ZipMember>& members() const { return members_; }
  // Returns a reader of a member. The archive and the member must outlive the reader. INVALID_ARGUMENT if the
  // member's compression is unknown, or if the member cannot have its stated length.
  absl::StatusOr<std::unique_ptr<ZipReader>> OpenMember(const ZipMember& member) const;
  // Returns the first `most` bytes of a member, or the whole member if it is shorter.
  absl::StatusOr<std::string> Read(const ZipMember& member, int64_t most) const;
  // Reads a member's bytes, and passes them to `use` in pieces, in order. Returns the error of `use`. A wrong
  // checksum is returned in place of the last piece.
  absl::Status ReadPieces(const ZipMember& member,
                          absl::FunctionRef<absl::Status(absl::string_view)> use) const;

 private:
  ZipFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status ReadDirectory();
  // Returns the offset of a member's packed bytes.
  absl::StatusOr<int64_t> FindPacked(const ZipMember& member) const;
  // Passes the first `most` bytes of a member to `use` in pieces, fewer if the member is shorter.
  absl::Status ReadFirst(const ZipMember& member, int64_t most,
                         absl::FunctionRef<absl::Status(absl::string_view)> use) const;
  // Reads `size` bytes at `offset`. INVALID_ARGUMENT if the file is shorter.
  absl::Status ReadAt(int64_t offset, int64_t size, void* data) const;
  absl::StatusOr<std::string> TextAt(int64_t offset, int64_t size) const;
  absl::Status Error(const std::string& what) const;

  const std::string path_;
  UniqueFd fd_;
  int64_t file_bytes_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_ZIP_H_
