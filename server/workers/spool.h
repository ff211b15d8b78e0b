#ifndef TANDEM_SERVER_WORKERS_SPOOL_H_
#define TANDEM_SERVER_WORKERS_SPOOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/workers/unique_fd.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// A spool is a file of a worker's events that the daemon may not have yet. Its format:
//
//   file    = "TNDSPL01" record*
//   record  = length:uint32 checksum:uint32 payload
//   payload = a serialized WorkerEvent of `length` bytes
//
// Numbers are little-endian. The checksum is zlib's CRC-32 of the four length bytes followed by the payload.
// Events stand in the order of their worker_sequence, which has no gaps within the file; the first may be any
// number, as the file is emptied from time to time when the daemon has all of it. A record that is cut short
// or whose checksum does not match is a torn tail: it and all after it were never written as far as a reader
// is concerned.
//
// One process writes, and it holds the job's worker lock. Another may read only when that lock is free.

// Appends to a spool. Not thread-safe, but for SpoolReaders on the same file, which may read what stands
// before end().
class SpoolWriter {
 public:
  // Where the first record begins.
  static constexpr int64_t kFirstOffset = 8;

  // Creates the file. AlreadyExists where there is one: each attempt has its own spool.
  static absl::StatusOr<std::unique_ptr<SpoolWriter>> Create(const std::string& path);

  // Appends one event. It survives the end of the process at once, and the machine's after Sync. After an
  // error the file is as it was.
  absl::Status Append(const internal::v1::WorkerEvent& event);
  // Waits until all that was appended is on the disk.
  absl::Status Sync();
  // Drops the records before `offset`, at which one begins or which is end(); those behind it move to
  // kFirstOffset. Readers of the path see the file as it was or as it is now. After an error nothing was
  // dropped.
  absl::Status DropBefore(int64_t offset);

  // Bytes of the file: the offset at which the next record will begin.
  int64_t end() const { return end_; }

 private:
  friend class SpoolReader;
  SpoolWriter(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  absl::Status Write(const std::string& bytes);

  const std::string path_;
  UniqueFd fd_;
  int64_t end_ = 0;
  std::string record_;  // Kept for its memory.
};

// Reads a spool from its beginning. Not thread-safe.
class SpoolReader {
 public:
  // NotFound where there is no file.
  static absl::StatusOr<std::unique_ptr<SpoolReader>> Open(const std::string& path);
  // Reads what `writer`, which must outlive the reader, has written.
  explicit SpoolReader(const SpoolWriter* writer) : path_(writer->path_), writer_(writer) {}

  // The next event; nothing at the end of the file, at a torn tail or at offset `limit`, and then again what
  // follows once more was written. Errors are those of reading the file.
  absl::StatusOr<std::optional<internal::v1::WorkerEvent>> Next(int64_t limit = INT64_MAX);
  // Where the next record begins.
  int64_t offset() const { return offset_; }
  // Goes to `offset`, at which a record begins, and forgets what was read ahead.
  void Seek(int64_t offset);

 private:
  SpoolReader(std::string path, UniqueFd fd) : path_(std::move(path)), owned_fd_(std::move(fd)) {}
  // Makes at least `size` bytes from offset_ stand in the buffer; false where the file has fewer before
  // `limit`.
  absl::StatusOr<bool> Fill(int64_t size, int64_t limit);

  const std::string path_;
  // One of these two.
  const UniqueFd owned_fd_;
  const SpoolWriter* const writer_ = nullptr;
  int64_t offset_ = SpoolWriter::kFirstOffset;
  // Bytes of the file from buffer_offset_.
  std::string buffer_;
  int64_t buffer_offset_ = SpoolWriter::kFirstOffset;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SPOOL_H_
