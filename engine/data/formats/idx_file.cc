#include "engine/data/formats/idx_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
// What deflate can make of one byte at most.
constexpr int64_t kMaxExpansion = 1032;
constexpr int64_t kChunk = int64_t{1} << 20;

const char* TypeName(uint8_t type) {
  switch (type) {
    case kUnsignedByte:
      return "unsigned bytes";
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floats";
    case 0x0E:
      return "64-bit floats";
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdxFile>> IdxFile::Open(const std::string& path, int min_rank, int max_rank,
                                                       int64_t max_bytes) {
  // Without O_NONBLOCK a named pipe would hold the caller up.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    return absl::InvalidArgumentError(error == ENOENT
                                          ? absl::StrCat(path, " does not exist")
                                          : absl::StrCat(path, " cannot be opened: ", std::strerror(error)));
  }
  struct stat stat;
  if (::fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  std::unique_ptr<IdxFile> file(new IdxFile(path, stat.st_size));
  uint8_t magic[2] = {};
  file->compressed_ = ::pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1F && magic[1] == 0x8B;
  if (uint8_t length[4]; file->compressed_ && ::pread(fd, length, 4, stat.st_size - 4) == 4) {
    file->trailer_length_ = length[0] | length[1] << 8 | length[2] << 16 | uint32_t{length[3]} << 24;
  }
  file->file_ = ::gzdopen(fd, "rb");
  if (file->file_ == nullptr) {
    ::close(fd);
    return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", path));
  }
  ::gzbuffer(file->file_, 1 << 17);
  TANDEM_RETURN_IF_ERROR(file->ReadHeader(min_rank, max_rank, max_bytes));
  return file;
}

IdxFile::~IdxFile() {
  if (file_ != nullptr) ::gzclose_r(file_);
}

absl::Status IdxFile::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, " ", what));
}

absl::StatusOr<int64_t> IdxFile::Read(uint8_t* data, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const int count = ::gzread(file_, data + done, static_cast<unsigned>(std::min(size - done, kChunk)));
    if (count < 0) {
      int code = Z_OK;
      const char* message = ::gzerror(file_, &code);
      if (code == Z_BUF_ERROR) return done;  // The compressed stream ends in the middle.
      return Error(absl::StrCat("is damaged: ", code == Z_ERRNO ? std::strerror(errno) : message));
    }
    if (count == 0) break;
    done += count;
  }
  return done;
}

absl::Status IdxFile::ReadHeader(int min_rank, int max_rank, int64_t max_bytes) {
  uint8_t magic[4] = {};
  TANDEM_ASSIGN_OR_RETURN(const int64_t magic_bytes, Read(magic, 4));
  if (magic_bytes < 4 || magic[0] != 0 || magic[1] != 0 || TypeName(magic[2]) == nullptr) {
    return Error(
        magic_bytes < 4
            ? absl::StrCat("is not an IDX file: it holds ", magic_bytes, " bytes")
            : absl::StrFormat("is not an IDX file: it begins with 0x%02x%02x%02x%02x, not with 0x000008 and "
                              "the number of dimensions",
                              magic[0], magic[1], magic[2], magic[3]));
  }
  if (magic[2] != kUnsignedByte) {
    return Error(absl::StrFormat("holds %s (IDX type 0x%02x); only unsigned bytes (0x08) can be read",
                                 TypeName(magic[2]), magic[2]));
  }
  const int rank = magic[3];
  if (rank < min_rank || rank > max_rank) {
    return Error(absl::StrCat("has ", rank, " dimensions; expected ", min_rank,
                              min_rank == max_rank ? "" : absl::StrCat(" or ", max_rank),
                              max_rank == 1 ? ", as a file of labels has" : ", as a file of images has"));
  }
  std::vector<int64_t> extents;
  for (int i = 0; i < rank; ++i) {
    uint8_t extent[4] = {};
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, Read(extent, 4));
    if (count < 4) return Error("is truncated: it ends within its header");
    extents.push_back(int64_t{extent[0]} << 24 | extent[1] << 16 | extent[2] << 8 | extent[3]);
  }
  header_bytes_ = 4 + 4 * rank;
  shape_ = Shape(std::move(extents));
  if (shape_.elements() == 0)
    return Error(absl::StrCat("holds no samples: its shape is ", shape_.ToString()));
  if (shape_.elements() > max_bytes) {
    return Error(absl::StrCat("announces ", shape_.ToString(), ", more than the ", max_bytes,
                              " bytes that can be read"));
  }
  // Before any memory is taken for what the header announces.
  const int64_t possible = compressed_ ? (file_bytes_ > max_bytes ? max_bytes : file_bytes_ * kMaxExpansion)
                                       : file_bytes_ - header_bytes_;
  if (shape_.elements() > possible) return Truncated(compressed_ ? -1 : possible);
  return absl::OkStatus();
}

absl::Status IdxFile::Truncated(int64_t found) const {
  return Error(absl::StrCat("is truncated: its header announces ", shape_.ToString(), ", ", shape_.elements(),
                            " bytes, ",
                            found < 0 ? absl::StrCat("and the file has ", file_bytes_, " compressed bytes")
                                      : absl::StrCat("and ", found, " follow")));
}

absl::Status IdxFile::TooLong() const {
  return Error(absl::StrCat("is longer than its header announces: ", shape_.ToString(), ", ",
                            shape_.elements(), " bytes"));
}

absl::Status IdxFile::CheckNothingFollows() {
  uint8_t more = 0;
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, Read(&more, 1));
  if (count != 0) return TooLong();
  if (int code = Z_OK; ::gzerror(file_, &code) != nullptr && code == Z_BUF_ERROR) {
    return Error("is truncated: its compressed stream does not end");
  }
  return absl::OkStatus();
}

absl::Status IdxFile::CheckLength() {
  const int64_t expected = header_bytes_ + shape_.elements();
  if (!compressed_) {
    if (file_bytes_ < expected) return Truncated(file_bytes_ - header_bytes_);
    if (file_bytes_ > expected) return TooLong();
    return absl::OkStatus();
  }
  if (trailer_length_ == static_cast<uint32_t>(expected)) return absl::OkStatus();
  std::vector<uint8_t> chunk(kChunk);
  for (int64_t left = shape_.elements(); left > 0;) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, Read(chunk.data(), std::min(left, kChunk)));
    if (count == 0) return Truncated(shape_.elements() - left);
    left -= count;
  }
  return CheckNothingFollows();
}

absl::StatusOr<std::vector<uint8_t>> IdxFile::ReadAll() {
  std::vector<uint8_t> elements;
  try {
    elements.resize(shape_.elements());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, " needs ", shape_.elements(), " bytes of memory, which cannot be had"));
  }
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, Read(elements.data(), shape_.elements()));
  if (count < shape_.elements()) return Truncated(count);
  TANDEM_RETURN_IF_ERROR(CheckNothingFollows());
  return elements;
}

}  // namespace tandem
