#ifndef TANDEM_SERVER_WORKERS_SPOOL_H_
#define TANDEM_SERVER_WORKERS_SPOOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/random_access_env.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// More than any event of a worker's has.
constexpr uint32_t kMaxWorkerEventBytes = 4 << 20;

// A spool is a file of a worker's events that the daemon may not have yet. Its format:
//
//   file    = "TNDSPL01" record*
//   record  = length:uint32 checksum:uint32 payload
//   payload = a serialized WorkerEvent of `length` bytes, at most kMaxWorkerEventBytes
//
// Numbers are little-endian. The checksum is zlib's CRC-32 of the four length bytes followed by the payload.
// Events stand in the order of their worker_sequence, which has no gaps within the file; the first may be any
// number, as the file is emptied from time to time when the daemon has all of it. A record that is cut short,
// whose checksum does not match or whose number does not follow (after a crash of the machine, it may be of
// before the file was emptied) is a torn tail: it and all after it were never written as far as a reader is
// concerned.
//
// One process writes, and it holds the job's worker lock. Another may read only when that lock is free.

// Appends to a spool. Not thread-safe, but for SpoolReaders on the same file, which may read what stands
// before end().
class SpoolWriter {
 public:
  // Where the first record begins.
  static constexpr int64_t kFirstOffset = 8;

  // Creates the file in `env`, which outlives the writer. AlreadyExists where there is one: each attempt has
  // its own spool.
  static absl::StatusOr<std::unique_ptr<SpoolWriter>> Create(const std::string& path,
                                                             RandomAccessEnv* env = RandomAccessEnv::Real());

  // Appends one event. It survives the end of the process at once, and the machine's after Sync. After an
  // error the file is as it was.
  absl::Status Append(const internal::v1::WorkerEvent& event);
  // Waits until all that was appended, and the file's name, is on the disk.
  absl::Status Sync();
  // Drops the records before `offset`, at which one begins or which is end(); those behind it move to
  // kFirstOffset. Readers of the path see the file as it was or as it is now. After an error nothing was
  // dropped.
  absl::Status DropBefore(int64_t offset);

  // Bytes of the file: the offset at which the next record will begin.
  int64_t end() const { return end_; }

 private:
  friend class SpoolReader;
  SpoolWriter(RandomAccessEnv* env, std::string path, std::unique_ptr<RandomAccessFile> file)
      : env_(env), path_(std::move(path)), file_(std::move(file)) {}
  absl::Status Write(const std::string& bytes);

  RandomAccessEnv* const env_;
  const std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  bool is_name_durable_ = false;
  int64_t end_ = 0;
  std::string record_;  // Kept for its memory.
};

// Reads a spool from its beginning. Not thread-safe.
class SpoolReader {
 public:
  // NotFound where there is no file.
  static absl::StatusOr<std::unique_ptr<SpoolReader>> Open(const std::string& path,
                                                           RandomAccessEnv* env = RandomAccessEnv::Real());
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
  SpoolReader(std::string path, std::unique_ptr<RandomAccessFile> file)
      : path_(std::move(path)), owned_file_(std::move(file)) {}
  // Makes at least `size` bytes from offset_ stand in the buffer; false where the file has fewer before
  // `limit`.
  absl::StatusOr<bool> Fill(int64_t size, int64_t limit);

  const std::string path_;
  // One of these two.
  const std::unique_ptr<RandomAccessFile> owned_file_;
  const SpoolWriter* const writer_ = nullptr;
  int64_t offset_ = SpoolWriter::kFirstOffset;
  // Of the event before offset_; 0: not known.
  int64_t last_sequence_ = 0;
  // Bytes of the file from buffer_offset_.
  std::string buffer_;
  int64_t buffer_offset_ = SpoolWriter::kFirstOffset;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SPOOL_H_
