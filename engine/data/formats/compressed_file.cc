#include "engine/data/formats/compressed_file.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/foreign_format.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"
#include "engine/data/formats/bzip2_file.h"
#include "engine/data/formats/gzip_file.h"
#include "engine/data/formats/packed_input.h"
#include "engine/data/formats/zip.h"
#include "engine/data/formats/zip_content.h"
#include "engine/data/formats/zstd_file.h"

namespace tandem {
namespace {

constexpr int64_t kInflatedChunk = int64_t{1} << 18;
// The most memory that is reserved before the file's real length is known.
constexpr int64_t kMostReserved = int64_t{1} << 26;
// The largest growth of a file, a few bytes aside. In deflate, 258 bytes need at least two bits. In LZMA, 273
// bytes need 14 decisions of at least a 45th of a bit. Larger stated lengths are not believed, because
// readers reserve the stated length.
constexpr int64_t kMostGrowthOfGzip = 1032;
constexpr int64_t kMostGrowthOfXz = 8192;
// The memory limit of the xz decompressor: xz -9 needs 65 MiB, larger dictionaries (7-Zip) more.
constexpr uint64_t kXzMemory = uint64_t{256} << 20;
// The memory limit of the list of an xz file's blocks: a million blocks. A file with more blocks must be read
// to know its length.
constexpr uint64_t kXzIndexMemory = uint64_t{32} << 20;

class UncompressedFile final : public CompressedFile {
 public:
  UncompressedFile(std::string path, int fd, int64_t bytes)
      : CompressedFile(std::move(path), bytes), input_(UniqueFd(fd)), bytes_(bytes) {}

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    int64_t done = 0;
    while (done < size) {
      if (left_.empty()) {
        const absl::StatusOr<int64_t> count = input_.Next();
        if (!count.ok()) return Error(std::string(count.status().message()));
        left_ = absl::string_view(input_.data(), *count);
        if (left_.empty()) break;
      }
      const size_t count = left_.copy(static_cast<char*>(data) + done, size - done);
      left_.remove_prefix(count);
      done += static_cast<int64_t>(count);
    }
    return done;
  }
  int64_t StatedLength() override { return bytes_; }

 private:
  PackedInput input_;
  const int64_t bytes_;
  absl::string_view left_;  // Of the input's piece.
};

class XzFile final : public CompressedFile {
 public:
  XzFile(std::string path, int fd, int64_t file_bytes)
      : CompressedFile(std::move(path)), fd_(fd), file_bytes_(file_bytes), input_(kInflatedChunk) {}
  ~XzFile() override { ::lzma_end(&stream_); }

  absl::Status Start() {
    if (::lzma_stream_decoder(&stream_, kXzMemory, LZMA_CONCATENATED) == LZMA_OK) return absl::OkStatus();
    return NoMemory();
  }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    stream_.next_out = static_cast<uint8_t*>(data);
    stream_.avail_out = size;
    while (stream_.avail_out > 0 && !ended_) {
      TANDEM_RETURN_IF_ERROR(Refill(stream_));
      const lzma_ret code = ::lzma_code(&stream_, input_ended_ ? LZMA_FINISH : LZMA_RUN);
      if (code == LZMA_STREAM_END) {
        ended_ = true;
      } else if (code == LZMA_BUF_ERROR && input_ended_) {
        return Error("is truncated: its compressed stream does not end");
      } else if (code != LZMA_OK) {
        return Damaged(code);
      }
    }
    return size - static_cast<int64_t>(stream_.avail_out);
  }

  int64_t StatedLength() override {
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_index* index = nullptr;
    int64_t length = -1;
    const int64_t position = ::lseek(fd_.get(), 0, SEEK_CUR);
    if (::lzma_file_info_decoder(&stream, &index, kXzIndexMemory, file_bytes_) == LZMA_OK) {
      std::vector<uint8_t> input(kInflatedChunk);
      ::lseek(fd_.get(), 0, SEEK_SET);
      bool input_ended = false;
      for (lzma_ret code = LZMA_OK; code == LZMA_OK || code == LZMA_SEEK_NEEDED;) {
        if (code == LZMA_SEEK_NEEDED) {
          if (::lseek(fd_.get(), static_cast<off_t>(stream.seek_pos), SEEK_SET) < 0) break;
          stream.avail_in = 0;
          input_ended = false;
        }
        if (stream.avail_in == 0 && !input_ended) {
          const ssize_t count = ::read(fd_.get(), input.data(), input.size());
          if (count < 0) break;
          input_ended = count == 0;
          stream.next_in = input.data();
          stream.avail_in = count;
        }
        code = ::lzma_code(&stream, input_ended ? LZMA_FINISH : LZMA_RUN);
        if (code == LZMA_STREAM_END) {
          const uint64_t stated = ::lzma_index_uncompressed_size(index);
          if (stated / kMostGrowthOfXz <= static_cast<uint64_t>(file_bytes_))
            length = static_cast<int64_t>(stated);
        }
      }
    }
    ::lzma_index_end(index, nullptr);
    ::lzma_end(&stream);
    ::lseek(fd_.get(), position, SEEK_SET);
    return length;
  }

 private:
  absl::Status Refill(lzma_stream& stream) {
    if (stream.avail_in > 0 || input_ended_) return absl::OkStatus();
    const ssize_t count = ::read(fd_.get(), input_.data(), input_.size());
    if (count < 0) return Error(absl::StrCat("cannot be read: ", std::strerror(errno)));
    input_ended_ = count == 0;
    stream.next_in = input_.data();
    stream.avail_in = count;
    return absl::OkStatus();
  }

  absl::Status Damaged(lzma_ret code) const {
    switch (code) {
      case LZMA_MEM_ERROR:
        return NoMemory();
      case LZMA_MEMLIMIT_ERROR:
        return Error(absl::StrCat("needs more than the ", kXzMemory >> 20,
                                  " MiB of memory that reading an xz file may take"));
      case LZMA_OPTIONS_ERROR:
        return Error("is compressed by a variant of xz that cannot be read");
      default:
        return Error("is damaged: its xz stream cannot be decompressed");
    }
  }

  const UniqueFd fd_;
  const int64_t file_bytes_;
  std::vector<uint8_t> input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool input_ended_ = false;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompressedFile>> CompressedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would block.
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
  std::string begin(kForeignFormatBytes, '\0');
  begin.resize(std::max<ssize_t>(0, ::pread(fd, begin.data(), begin.size(), 0)));
  if (absl::StartsWith(begin, absl::string_view("\xFD\x37zXZ\0", 6))) {
    auto file = std::make_unique<XzFile>(path, fd, stat.st_size);
    TANDEM_RETURN_IF_ERROR(file->Start());
    return file;
  }
  if (IsZstd(begin)) return OpenZstd(path, fd);
  if (IsBzip2(begin)) return OpenBzip2(path, fd);
  const std::string fault = ForeignDataFault(begin);
  const bool is_zip = IsZip(begin);
  if (!fault.empty() || is_zip) {
    ::close(fd);
    if (fault.empty()) return OpenZipContent(path);
    return absl::InvalidArgumentError(absl::StrCat(path, " ", fault));
  }
  if (!IsGzip(begin)) return std::make_unique<UncompressedFile>(path, fd, stat.st_size);
  uint8_t length[4] = {};
  // Modulo 2^32.
  int64_t stated = ::pread(fd, length, 4, stat.st_size - 4) == 4
                       ? length[0] | length[1] << 8 | length[2] << 16 | static_cast<int64_t>(length[3]) << 24
                       : -1;
  if (stated / kMostGrowthOfGzip > stat.st_size) stated = -1;
  return OpenGzip(path, fd, stated);
}

absl::Status CompressedFile::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, " ", what));
}

absl::Status CompressedFile::NoMemory() const {
  return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", path_));
}

int64_t CompressedFile::MostInMemory(int64_t most, int64_t times) {
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return memory > 0 ? std::min(most, memory / 2 / times) : most;
}

absl::Status CompressedFile::TooLong(int64_t max_bytes) const {
  return Error(absl::StrCat("is longer than the ", max_bytes, " bytes that can be read"));
}

absl::Status CompressedFile::CheckPlainLength(int64_t max_bytes) const {
  return plain_bytes_ > max_bytes ? TooLong(max_bytes) : absl::OkStatus();
}

absl::Status CompressedFile::Skip(int64_t bytes) {
  std::vector<char> buffer(std::min<int64_t>(bytes, kInflatedChunk));
  while (bytes > 0) {
    const int64_t wanted = std::min<int64_t>(bytes, buffer.size());
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, Read(buffer.data(), wanted));
    if (count < wanted) return Error("is truncated: its last member does not end");
    bytes -= count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CompressedFile::ReadAll(int64_t max_bytes) {
  TANDEM_RETURN_IF_ERROR(CheckPlainLength(max_bytes));
  std::string content;
  try {
    if (const int64_t stated = StatedLength(); stated > 0)
      content.reserve(std::min({stated, max_bytes, kMostReserved}));
    while (true) {
      const size_t begin = content.size();
      content.resize(begin + kInflatedChunk);
      TANDEM_ASSIGN_OR_RETURN(const int64_t count, Read(content.data() + begin, kInflatedChunk));
      content.resize(begin + count);
      if (static_cast<int64_t>(content.size()) > max_bytes) return TooLong(max_bytes);
      if (count < kInflatedChunk) return content;
    }
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

}  // namespace tandem
