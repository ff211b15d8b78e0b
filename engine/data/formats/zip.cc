#include "engine/data/formats/zip.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int64_t kZipPieceBytes = int64_t{1} << 20;
constexpr int64_t kEndBytes = 22;
constexpr int64_t kMaxComment = 65535;
constexpr int64_t kMaxDirectory = int64_t{1} << 30;
constexpr char kMadeOnUnix = 3;
constexpr int kStored = 0, kDeflated = 8;
constexpr uint32_t kUnknown32 = 0xFFFFFFFF;

uint64_t Little(absl::string_view text, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(text[at + i]);
  return value;
}

// Reads the 64-bit numbers of a member's extra field in place of the 32-bit numbers.
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

// Reads packed bytes at an offset of the archive.
using ReadPacked = std::function<absl::Status(int64_t offset, int64_t size, void* data)>;

// A reader of a stored or a deflated member.
class MemberReader final : public ZipReader {
 public:
  // `begin` is the offset of the packed bytes.
  MemberReader(const std::string& path, const ZipMember& member, int64_t begin, ReadPacked read)
      : path_(path), member_(member), begin_(begin), read_(std::move(read)) {}
  ~MemberReader() override {
    if (inflates_) ::inflateEnd(&stream_);
  }

  absl::Status Start() {
    if (member_.method == kStored) return absl::OkStatus();
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK) return absl::ResourceExhaustedError("no memory");
    inflates_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    int64_t count = 0;
    for (const int64_t wanted = std::min(size, member_.bytes - done_); count < wanted;) {
      const int64_t piece = std::min(kZipPieceBytes, wanted - count);
      auto* const to = static_cast<Bytef*>(data) + count;
      TANDEM_RETURN_IF_ERROR(inflates_ ? Inflate(to, piece) : read_(begin_ + done_, piece, to));
      crc_ = ::crc32(crc_, to, static_cast<uInt>(piece));
      count += piece;
      done_ += piece;
    }
    if (done_ == member_.bytes && crc_ != member_.crc) {
      return Damaged(absl::StrCat("the checksum of member ", member_.name, " is wrong"));
    }
    return count;
  }

 private:
  // Decompresses exactly `size` bytes.
  absl::Status Inflate(Bytef* data, int64_t size) {
    stream_.next_out = data;
    stream_.avail_out = static_cast<uInt>(size);
    for (int code = Z_OK; code == Z_OK && stream_.avail_out > 0;) {
      if (stream_.avail_in == 0 && taken_ < member_.packed_bytes) {
        packed_.resize(std::min(kZipPieceBytes, member_.packed_bytes - taken_));
        const auto count = static_cast<int64_t>(packed_.size());
        TANDEM_RETURN_IF_ERROR(read_(begin_ + taken_, count, packed_.data()));
        taken_ += count;
        stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
        stream_.avail_in = static_cast<uInt>(count);
      }
      // Z_BUF_ERROR means that inflate cannot continue.
      code = ::inflate(&stream_, Z_NO_FLUSH);
    }
    if (stream_.avail_out == 0) return absl::OkStatus();
    return Damaged(absl::StrCat("member ", member_.name, " cannot be decompressed"));
  }

  absl::Status Damaged(absl::string_view fault) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, " is damaged: ", fault));
  }

  const std::string path_;
  const ZipMember& member_;
  const int64_t begin_;
  const ReadPacked read_;
  z_stream stream_ = {};
  bool inflates_ = false;
  std::string packed_;
  int64_t taken_ = 0;  // Packed bytes that were read.
  int64_t done_ = 0;
  uLong crc_ = 0;
};

}  // namespace

bool IsZip(absl::string_view begin) {
  return absl::StartsWith(begin, "PK\x03\x04") || absl::StartsWith(begin, "PK\x05\x06");
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

absl::Status ZipFile::ReadAt(int64_t offset, int64_t size, void* data) const {
  if (offset < 0 || size < 0 || offset > file_bytes_ || size > file_bytes_ - offset) {
    return Error("is damaged or truncated: a part of the archive lies outside the file");
  }
  for (int64_t done = 0; done < size;) {
    const ssize_t count = ::pread(fd_.get(), static_cast<char*>(data) + done, size - done, offset + done);
    if (count <= 0) return Error("cannot be read");
    done += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ZipFile::TextAt(int64_t offset, int64_t size) const {
  // The size is checked before memory is taken.
  if (size < 0 || size > file_bytes_) {
    return Error("is damaged or truncated: a part of the archive lies outside the file");
  }
  std::string text(size, '\0');
  TANDEM_RETURN_IF_ERROR(ReadAt(offset, size, text.data()));
  return text;
}

absl::Status ZipFile::ReadDirectory() {
  const int64_t tail = std::min(file_bytes_, kEndBytes + kMaxComment);
  TANDEM_ASSIGN_OR_RETURN(const std::string end, TextAt(file_bytes_ - tail, tail));
  const size_t at = end.rfind("PK\x05\x06");
  if (at == std::string::npos || end.size() - at < kEndBytes) {
    return Error("is no zip archive, or is truncated: it has no directory at its end");
  }
  uint64_t count = Little(end, at + 10, 2), size = Little(end, at + 12, 4), offset = Little(end, at + 16, 4);
  // Archivers without 64-bit numbers write larger counts modulo 2^16.
  uint64_t modulus = uint64_t{1} << 16;
  if (at >= 20 && end.compare(at - 20, 4, "PK\x06\x07") == 0) {
    TANDEM_ASSIGN_OR_RETURN(const std::string large,
                            TextAt(static_cast<int64_t>(Little(end, at - 12, 8)), 56));
    if (large.compare(0, 4, "PK\x06\x06") != 0) return Error("is damaged: its directory is wrong");
    count = Little(large, 32, 8);
    modulus = 0;
    size = Little(large, 40, 8);
    offset = Little(large, 48, 8);
  }
  if (size > kMaxDirectory) {
    return Error(absl::StrCat("is damaged, or has more than ", kMaxDirectory, " bytes of names; unpack it"));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::string directory,
                          TextAt(static_cast<int64_t>(offset), static_cast<int64_t>(size)));
  absl::string_view left = directory;
  while (!left.empty()) {
    if (left.size() < 46 || left.substr(0, 4) != "PK\x01\x02") {
      return Error("is damaged: its directory is wrong");
    }
    ZipMember member;
    member.method = static_cast<int>(Little(left, 10, 2));
    member.crc = static_cast<uint32_t>(Little(left, 16, 4));
    member.packed_bytes = static_cast<int64_t>(Little(left, 20, 4));
    member.bytes = static_cast<int64_t>(Little(left, 24, 4));
    member.header_at = static_cast<int64_t>(Little(left, 42, 4));
    // The upper half of the attributes is the file's mode if the archive was made on Unix.
    member.is_link = left[5] == kMadeOnUnix && S_ISLNK(Little(left, 40, 2));
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
  const uint64_t found = modulus == 0 ? members_.size() : members_.size() % modulus;
  if (found == count) return absl::OkStatus();
  return Error(absl::StrCat("is damaged: its directory has ", members_.size(), " files, but states ", count));
}

absl::StatusOr<int64_t> ZipFile::FindPacked(const ZipMember& member) const {
  TANDEM_ASSIGN_OR_RETURN(const std::string header, TextAt(member.header_at, 30));
  if (header.compare(0, 4, "PK\x03\x04") != 0) return Error("is damaged: a member's header is wrong");
  const int64_t begin =
      member.header_at + 30 + static_cast<int64_t>(Little(header, 26, 2) + Little(header, 28, 2));
  if (member.packed_bytes > file_bytes_ || begin > file_bytes_ - member.packed_bytes) {
    return Error("is damaged or truncated: a part of the archive lies outside the file");
  }
  return begin;
}

absl::StatusOr<std::unique_ptr<ZipReader>> ZipFile::OpenMember(const ZipMember& member) const {
  TANDEM_ASSIGN_OR_RETURN(const int64_t begin, FindPacked(member));
  // deflate expands a byte to at most this number.
  constexpr int64_t kMaxExpansion = 1032;
  if (member.method == kStored) {
    if (member.packed_bytes != member.bytes) return Error(absl::StrCat("is damaged: member ", member.name));
  } else if (member.method != kDeflated) {
    return Error(absl::StrCat("has member ", member.name, " in compression method ", member.method,
                              "; only stored and deflated members can be read"));
  } else if (member.bytes / kMaxExpansion > member.packed_bytes) {
    return Error(absl::StrCat("is damaged: member ", member.name, " cannot be as long as it says"));
  }
  auto reader = std::make_unique<MemberReader>(
      path_, member, begin,
      [this](int64_t offset, int64_t size, void* data) { return ReadAt(offset, size, data); });
  TANDEM_RETURN_IF_ERROR(reader->Start());
  return reader;
}

absl::Status ZipFile::ReadFirst(const ZipMember& member, int64_t most,
                                absl::FunctionRef<absl::Status(absl::string_view)> use) const {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ZipReader> reader, OpenMember(member));
  std::string piece;
  for (int64_t left = std::min(most, member.bytes); left > 0; left -= static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(kZipPieceBytes, left));
    TANDEM_RETURN_IF_ERROR(reader->Read(piece.data(), static_cast<int64_t>(piece.size())).status());
    TANDEM_RETURN_IF_ERROR(use(piece));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ZipFile::Read(const ZipMember& member, int64_t most) const {
  std::string content;
  TANDEM_RETURN_IF_ERROR(ReadFirst(member, most, [&](absl::string_view piece) {
    absl::StrAppend(&content, piece);
    return absl::OkStatus();
  }));
  return content;
}

absl::Status ZipFile::ReadPieces(const ZipMember& member,
                                 absl::FunctionRef<absl::Status(absl::string_view)> use) const {
  return ReadFirst(member, member.bytes, use);
}

}  // namespace tandem
