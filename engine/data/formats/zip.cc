#include "engine/data/formats/zip.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int64_t kEndBytes = 22;
constexpr int64_t kMaxComment = 65535;
constexpr int64_t kMaxDirectory = int64_t{1} << 24;
constexpr uint32_t kUnknown32 = 0xFFFFFFFF;

uint64_t Little(absl::string_view text, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(text[at + i]);
  return value;
}

// Takes the 64-bit numbers that stand in a member's extra field in place of those of 32 bits.
bool TakeLargeNumbers(absl::string_view extra, ZipMember& member) {
  while (extra.size() >= 4) {
    const uint64_t id = Little(extra, 0, 2), size = Little(extra, 2, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) return false;
    if (id == 1) {
      absl::string_view numbers = extra.substr(0, size);
      for (int64_t* number : {&member.bytes, &member.packed_bytes, &member.header_at}) {
        if (*number != kUnknown32) continue;
        if (numbers.size() < 8) return false;
        *number = static_cast<int64_t>(Little(numbers, 0, 8));
        if (*number < 0) return false;
        numbers.remove_prefix(8);
      }
    }
    extra.remove_prefix(size);
  }
  return true;
}

}  // namespace

ZipFile::ZipFile(ZipFile&& other) noexcept
    : path_(other.path_),
      fd_(std::exchange(other.fd_, -1)),
      file_bytes_(other.file_bytes_),
      members_(std::move(other.members_)) {}

ZipFile::~ZipFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status ZipFile::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, " ", what));
}

absl::StatusOr<ZipFile> ZipFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " cannot be opened: ", std::strerror(errno)));
  }
  ZipFile file(path, fd);
  struct stat stat;
  if (::fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) return file.Error("is not a regular file");
  file.file_bytes_ = stat.st_size;
  TANDEM_RETURN_IF_ERROR(file.ReadDirectory());
  return file;
}

absl::StatusOr<std::string> ZipFile::ReadAt(int64_t offset, int64_t size) const {
  if (offset < 0 || size < 0 || offset > file_bytes_ || size > file_bytes_ - offset) {
    return Error("is damaged or truncated: a part of the archive lies outside the file");
  }
  std::string content(size, '\0');
  for (int64_t done = 0; done < size;) {
    const ssize_t count = ::pread(fd_, content.data() + done, size - done, offset + done);
    if (count <= 0) return Error("cannot be read");
    done += count;
  }
  return content;
}

absl::Status ZipFile::ReadDirectory() {
  const int64_t tail = std::min(file_bytes_, kEndBytes + kMaxComment);
  TANDEM_ASSIGN_OR_RETURN(const std::string end, ReadAt(file_bytes_ - tail, tail));
  const size_t at = end.rfind("PK\x05\x06");
  if (at == std::string::npos || end.size() - at < kEndBytes) {
    return Error("is no zip archive, or is truncated: it has no directory at its end");
  }
  uint64_t count = Little(end, at + 10, 2), size = Little(end, at + 12, 4), offset = Little(end, at + 16, 4);
  if (at >= 20 && end.compare(at - 20, 4, "PK\x06\x07") == 0) {
    TANDEM_ASSIGN_OR_RETURN(const std::string large,
                            ReadAt(static_cast<int64_t>(Little(end, at - 12, 8)), 56));
    if (large.compare(0, 4, "PK\x06\x06") != 0) return Error("is damaged: its directory is wrong");
    count = Little(large, 32, 8);
    size = Little(large, 40, 8);
    offset = Little(large, 48, 8);
  }
  if (size > kMaxDirectory) return Error("is damaged: its directory is too large");
  TANDEM_ASSIGN_OR_RETURN(const std::string directory,
                          ReadAt(static_cast<int64_t>(offset), static_cast<int64_t>(size)));
  absl::string_view left = directory;
  for (uint64_t i = 0; i < count; ++i) {
    if (left.size() < 46 || left.substr(0, 4) != "PK\x01\x02") {
      return Error("is damaged: its directory is wrong");
    }
    ZipMember member;
    member.method = static_cast<int>(Little(left, 10, 2));
    member.crc = static_cast<uint32_t>(Little(left, 16, 4));
    member.packed_bytes = static_cast<int64_t>(Little(left, 20, 4));
    member.bytes = static_cast<int64_t>(Little(left, 24, 4));
    member.header_at = static_cast<int64_t>(Little(left, 42, 4));
    const uint64_t name = Little(left, 28, 2), extra = Little(left, 30, 2), comment = Little(left, 32, 2);
    if (left.size() < 46 + name + extra + comment) return Error("is damaged: its directory is wrong");
    member.name = std::string(left.substr(46, name));
    if (!TakeLargeNumbers(left.substr(46 + name, extra), member)) {
      return Error("is damaged: its directory is wrong");
    }
    if (Little(left, 8, 2) & 1) return Error("is encrypted");
    left.remove_prefix(46 + name + extra + comment);
    members_.push_back(std::move(member));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ZipFile::Read(const ZipMember& member, int64_t most) const {
  TANDEM_ASSIGN_OR_RETURN(const std::string header, ReadAt(member.header_at, 30));
  if (header.compare(0, 4, "PK\x03\x04") != 0) return Error("is damaged: a member's header is wrong");
  const int64_t begin =
      member.header_at + 30 + static_cast<int64_t>(Little(header, 26, 2) + Little(header, 28, 2));
  const int64_t wanted = std::min(most, member.bytes);
  std::string content;
  if (member.method == 0) {
    if (member.packed_bytes != member.bytes) return Error(absl::StrCat("is damaged: member ", member.name));
    TANDEM_ASSIGN_OR_RETURN(content, ReadAt(begin, wanted));
  } else if (member.method == 8) {
    // deflate makes at most so many bytes of one: no memory is taken for what cannot be there.
    constexpr int64_t kMaxExpansion = 1032;
    if (member.packed_bytes > file_bytes_ || member.bytes / kMaxExpansion > member.packed_bytes) {
      return Error(absl::StrCat("is damaged: member ", member.name, " cannot be as long as it says"));
    }
    TANDEM_ASSIGN_OR_RETURN(std::string packed, ReadAt(begin, member.packed_bytes));
    content.resize(wanted);
    z_stream stream = {};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::ResourceExhaustedError("no memory");
    int64_t in = 0, out = 0;
    int code = Z_OK;
    while (code == Z_OK && out < wanted) {
      constexpr int64_t kMost = 1 << 30;
      stream.next_in = reinterpret_cast<Bytef*>(packed.data()) + in;
      stream.avail_in = static_cast<uInt>(std::min<int64_t>(kMost, member.packed_bytes - in));
      stream.next_out = reinterpret_cast<Bytef*>(content.data()) + out;
      stream.avail_out = static_cast<uInt>(std::min(kMost, wanted - out));
      const uInt had_in = stream.avail_in, had_out = stream.avail_out;
      code = ::inflate(&stream, Z_NO_FLUSH);
      in += had_in - stream.avail_in;
      out += had_out - stream.avail_out;
    }
    ::inflateEnd(&stream);
    if (out < wanted)
      return Error(absl::StrCat("is damaged: member ", member.name, " cannot be decompressed"));
  } else {
    return Error(absl::StrCat("has member ", member.name, " in compression method ", member.method,
                              "; only stored and deflated members can be read"));
  }
  if (wanted == member.bytes) {
    uLong crc = 0;
    for (size_t at = 0; at < content.size(); at += 1 << 30) {
      crc = ::crc32(crc, reinterpret_cast<const Bytef*>(content.data()) + at,
                    static_cast<uInt>(std::min<size_t>(1 << 30, content.size() - at)));
    }
    if (crc != member.crc)
      return Error(absl::StrCat("is damaged: the checksum of member ", member.name, " is wrong"));
  }
  return content;
}

}  // namespace tandem
