#include "server/workers/spool.h"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

constexpr absl::string_view kMagic = "TNDSPL01";
constexpr int64_t kHeaderSize = 8;
// A larger length can only be damage.
constexpr uint32_t kMaxPayload = 64u << 20;
constexpr int64_t kReadSize = 256 << 10;

void StoreUint32(uint32_t value, char* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(value >> (8 * i));
}

uint32_t LoadUint32(const char* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return value;
}

// Of the length bytes at `record` and the payload behind the checksum.
uint32_t Checksum(const char* record, uint32_t payload_size) {
  uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(record), 4);
  checksum = crc32(checksum, reinterpret_cast<const Bytef*>(record + kHeaderSize), payload_size);
  return static_cast<uint32_t>(checksum);
}

absl::Status FileError(int error, absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " the event spool ", path));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpoolWriter>> SpoolWriter::Create(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) return FileError(errno, "create", path);
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter(path, std::move(fd)));
  TANDEM_RETURN_IF_ERROR(writer->Write(std::string(kMagic)));
  return writer;
}

absl::Status SpoolWriter::Write(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, end_ + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      // Half a record would be a torn tail to a reader but in the way of the next one.
      if (ftruncate(fd_.get(), end_) != 0) return FileError(errno, "mend", path_);
      return FileError(error, "write", path_);
    }
    done += count;
  }
  end_ += bytes.size();
  return absl::OkStatus();
}

absl::Status SpoolWriter::Append(const WorkerEvent& event) {
  const size_t size = event.ByteSizeLong();
  if (size > kMaxPayload) {
    return absl::InvalidArgumentError(
        absl::StrCat("an event of ", size, " bytes is too large for the spool"));
  }
  record_.resize(kHeaderSize + size);
  StoreUint32(static_cast<uint32_t>(size), record_.data());
  event.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(record_.data() + kHeaderSize));
  StoreUint32(Checksum(record_.data(), static_cast<uint32_t>(size)), record_.data() + 4);
  return Write(record_);
}

absl::Status SpoolWriter::Sync() {
  if (fdatasync(fd_.get()) != 0) return FileError(errno, "sync", path_);
  return absl::OkStatus();
}

absl::Status SpoolWriter::DropBefore(int64_t offset) {
  if (offset == end_) {
    if (ftruncate(fd_.get(), kFirstOffset) != 0) return FileError(errno, "empty", path_);
    end_ = kFirstOffset;
    return absl::OkStatus();
  }
  std::string kept(end_ - offset, '\0');
  for (size_t done = 0; done < kept.size();) {
    const ssize_t count = pread(fd_.get(), kept.data() + done, kept.size() - done, offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return FileError(count < 0 ? errno : EIO, "read back", path_);
    done += count;
  }
  const std::string path = path_ + ".tmp";
  UniqueFd fd(open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) return FileError(errno, "create", path);
  SpoolWriter writer(path, std::move(fd));
  absl::Status status = writer.Write(absl::StrCat(kMagic, kept));
  if (status.ok()) status = writer.Sync();
  if (status.ok() && rename(path.c_str(), path_.c_str()) != 0) status = FileError(errno, "replace", path_);
  if (!status.ok()) {
    unlink(path.c_str());
    return status;
  }
  fd_ = std::move(writer.fd_);
  end_ = writer.end_;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SpoolReader>> SpoolReader::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "open", path);
  char magic[kHeaderSize];
  const ssize_t count = pread(fd.get(), magic, sizeof(magic), 0);
  if (count < 0) return FileError(errno, "read", path);
  // A shorter file is one whose writer died while it created it.
  if (count == kHeaderSize && absl::string_view(magic, sizeof(magic)) != kMagic) {
    return absl::DataLossError(
        absl::StrCat(path, " is not an event spool: it begins with other bytes than ", kMagic));
  }
  return std::unique_ptr<SpoolReader>(new SpoolReader(path, std::move(fd)));
}

void SpoolReader::Seek(int64_t offset) {
  offset_ = offset;
  buffer_offset_ = offset;
  buffer_.clear();
}

absl::StatusOr<bool> SpoolReader::Fill(int64_t size, int64_t limit) {
  if (offset_ + size > limit) return false;
  if (buffer_offset_ + static_cast<int64_t>(buffer_.size()) >= offset_ + size) return true;
  buffer_.erase(0, offset_ - buffer_offset_);
  buffer_offset_ = offset_;
  const int fd = writer_ != nullptr ? writer_->fd_.get() : owned_fd_.get();
  const int64_t wanted = std::min(std::max(size, kReadSize), limit - offset_);
  int64_t have = buffer_.size();
  buffer_.resize(wanted);
  while (have < wanted) {
    const ssize_t count = pread(fd, buffer_.data() + have, wanted - have, buffer_offset_ + have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      buffer_.resize(have);
      return FileError(error, "read", path_);
    }
    if (count == 0) break;
    have += count;
  }
  buffer_.resize(have);
  return have >= size;
}

absl::StatusOr<std::optional<WorkerEvent>> SpoolReader::Next(int64_t limit) {
  TANDEM_ASSIGN_OR_RETURN(const bool has_header, Fill(kHeaderSize, limit));
  if (!has_header) return std::nullopt;
  const uint32_t size = LoadUint32(buffer_.data() + (offset_ - buffer_offset_));
  if (size > kMaxPayload) return std::nullopt;
  TANDEM_ASSIGN_OR_RETURN(const bool has_payload, Fill(kHeaderSize + size, limit));
  if (!has_payload) return std::nullopt;
  const char* record = buffer_.data() + (offset_ - buffer_offset_);
  WorkerEvent event;
  if (Checksum(record, size) != LoadUint32(record + 4) || !event.ParseFromArray(record + kHeaderSize, size)) {
    // Read it anew next time: a torn tail may be one that is still being written.
    buffer_.resize(offset_ - buffer_offset_);
    return std::nullopt;
  }
  offset_ += kHeaderSize + size;
  return event;
}

}  // namespace tandem
