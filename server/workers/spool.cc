#include "server/workers/spool.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

constexpr absl::string_view kMagic = "TNDSPL01";
constexpr int64_t kHeaderSize = 8;
// A larger length means damage.
constexpr uint32_t kMaxPayload = kMaxWorkerEventBytes;
constexpr int64_t kReadSize = 256 << 10;

void StoreUint32(uint32_t value, char* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(value >> (8 * i));
}

uint32_t LoadUint32(const char* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return value;
}

// Returns the checksum of the length bytes at `record` and of the payload after the checksum.
uint32_t Checksum(const char* record, uint32_t payload_size) {
  uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(record), 4);
  checksum = crc32(checksum, reinterpret_cast<const Bytef*>(record + kHeaderSize), payload_size);
  return static_cast<uint32_t>(checksum);
}

absl::Status SpoolError(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("the event spool: ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpoolWriter>> SpoolWriter::Create(const std::string& path,
                                                                 RandomAccessEnv* env) {
  auto file = env->OpenRandomAccess(path, RandomAccessEnv::Open::kCreateNew);
  if (!file.ok()) return SpoolError(file.status());
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter(env, path, *std::move(file)));
  TANDEM_RETURN_IF_ERROR(writer->Write(std::string(kMagic)));
  return writer;
}

absl::Status SpoolWriter::Write(const std::string& bytes) {
  if (const absl::Status status = file_->WriteAt(end_, bytes); !status.ok()) {
    // Half a record would look like a torn tail to a reader, but would block the next record.
    const absl::Status mended = file_->Truncate(end_);
    return SpoolError(mended.ok() ? status : mended);
  }
  end_ += bytes.size();
  return absl::OkStatus();
}

absl::Status SpoolWriter::Append(const WorkerEvent& event) {
  const size_t size = event.ByteSizeLong();
  if (size > kMaxPayload) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot add an event of ", size, " bytes to the spool: it is too large"));
  }
  record_.resize(kHeaderSize + size);
  StoreUint32(static_cast<uint32_t>(size), record_.data());
  event.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(record_.data() + kHeaderSize));
  StoreUint32(Checksum(record_.data(), static_cast<uint32_t>(size)), record_.data() + 4);
  return Write(record_);
}

absl::Status SpoolWriter::Sync() {
  absl::Status status = file_->Sync();
  if (status.ok() && !is_name_durable_) {
    status = env_->SyncDirectory(ParentFolder(path_));
    is_name_durable_ = status.ok();
  }
  return status.ok() ? status : SpoolError(status);
}

absl::Status SpoolWriter::DropBefore(int64_t offset) {
  if (offset == end_) {
    if (const absl::Status status = file_->Truncate(kFirstOffset); !status.ok()) return SpoolError(status);
    end_ = kFirstOffset;
    return absl::OkStatus();
  }
  std::string kept(end_ - offset, '\0');
  const absl::StatusOr<int64_t> count = file_->ReadAt(offset, kept.size(), kept.data());
  if (!count.ok()) return SpoolError(count.status());
  if (*count != kept.size())
    return absl::DataLossError(absl::StrCat("cannot read ", path_, ": it became shorter"));
  const std::string path = path_ + ".tmp";
  auto file = env_->OpenRandomAccess(path, RandomAccessEnv::Open::kEmpty);
  if (!file.ok()) return SpoolError(file.status());
  SpoolWriter writer(env_, path, *std::move(file));
  absl::Status status = writer.Write(absl::StrCat(kMagic, kept));
  if (status.ok()) status = writer.file_->Sync();
  if (status.ok()) status = env_->RenameFile(path, path_);
  if (!status.ok()) {
    env_->RemoveFile(path).IgnoreError();
    return SpoolError(status);
  }
  file_ = std::move(writer.file_);
  end_ = writer.end_;
  is_name_durable_ = false;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SpoolReader>> SpoolReader::Open(const std::string& path,
                                                               RandomAccessEnv* env) {
  auto file = env->OpenRandomAccess(path, RandomAccessEnv::Open::kReadOnly);
  if (!file.ok()) return SpoolError(file.status());
  char magic[kHeaderSize];
  const absl::StatusOr<int64_t> count = (*file)->ReadAt(0, sizeof(magic), magic);
  if (!count.ok()) return SpoolError(count.status());
  // The writer died while creating a shorter file. A machine's crash leaves zeros.
  const absl::string_view begin(magic, *count);
  if (*count == kHeaderSize && begin != kMagic && begin != std::string(kHeaderSize, '\0')) {
    return absl::DataLossError(absl::StrCat(
        "cannot read ", path, ": it is not an event spool, because it does not start with ", kMagic));
  }
  return std::unique_ptr<SpoolReader>(new SpoolReader(path, *std::move(file)));
}

void SpoolReader::Seek(int64_t offset) {
  offset_ = offset;
  last_sequence_ = 0;
  buffer_offset_ = offset;
  buffer_.clear();
}

absl::StatusOr<bool> SpoolReader::Fill(int64_t size, int64_t limit) {
  if (offset_ + size > limit) return false;
  if (buffer_offset_ + static_cast<int64_t>(buffer_.size()) >= offset_ + size) return true;
  buffer_.erase(0, offset_ - buffer_offset_);
  buffer_offset_ = offset_;
  const RandomAccessFile& file = writer_ != nullptr ? *writer_->file_ : *owned_file_;
  const int64_t wanted = std::min(std::max(size, kReadSize), limit - offset_);
  const int64_t have = buffer_.size();
  buffer_.resize(wanted);
  const absl::StatusOr<int64_t> count =
      file.ReadAt(buffer_offset_ + have, wanted - have, buffer_.data() + have);
  buffer_.resize(have + count.value_or(0));
  if (!count.ok()) return SpoolError(count.status());
  return static_cast<int64_t>(buffer_.size()) >= size;
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
  if (Checksum(record, size) != LoadUint32(record + 4) || !event.ParseFromArray(record + kHeaderSize, size) ||
      (last_sequence_ != 0 && event.worker_sequence() != last_sequence_ + 1)) {
    // Read the tail again next time, because it may still be in writing.
    buffer_.resize(offset_ - buffer_offset_);
    return std::nullopt;
  }
  offset_ += kHeaderSize + size;
  last_sequence_ = event.worker_sequence();
  return event;
}

}  // namespace tandem
