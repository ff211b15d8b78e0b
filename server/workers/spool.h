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

// The most bytes of an event of a worker.
constexpr uint32_t kMaxWorkerEventBytes = 4 << 20;

// A spool is a file of a worker's events that the daemon may not have yet. Its format:
//
//   file    = "TNDSPL01" record*
//   record  = length:uint32 checksum:uint32 payload
//   payload = a serialized WorkerEvent of `length` bytes, at most kMaxWorkerEventBytes
//
// Numbers are little-endian. The checksum is zlib's CRC-32 of the four length bytes and the payload. Events
// are in the order of their worker_sequence, without gaps in the file. The first may have any number, because
// the file is emptied now and then when the daemon has all events.
//
// A record is a torn tail if it is cut short, its checksum does not match, or its number does not follow.
// After a crash of the machine, a wrong number may come from before the file was emptied. Readers ignore a
// torn tail and everything after it.
//
// One process writes, while it holds the job's worker lock. Another process may read only when that lock is
// free.

// Appends to a spool. Not thread-safe, except that SpoolReaders of the same writer may read the bytes before
// end().
class SpoolWriter {
 public:
  // The offset of the first record.
  static constexpr int64_t kFirstOffset = 8;

  // Creates the file in `env`, which must outlive the writer. ALREADY_EXISTS if the file exists: each attempt
  // has its own spool.
  static absl::StatusOr<std::unique_ptr<SpoolWriter>> Create(const std::string& path,
                                                             RandomAccessEnv* env = RandomAccessEnv::Real());

  // Appends an event. It survives the process's end at once, and the machine's after Sync. After an error the
  // file is unchanged.
  absl::Status Append(const internal::v1::WorkerEvent& event);
  // Blocks until all events and the file's name are on the disk.
  absl::Status Sync();
  // Drops the records before `offset`, which must be the start of a record or end(). The rest moves to
  // kFirstOffset. Readers by path see the old or the new file. After an error nothing was dropped.
  absl::Status DropBefore(int64_t offset);

  // Returns the file's size: the offset of the next record.
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
  std::string record_;  // Reused for its memory.
};

// Reads a spool from its beginning. Not thread-safe.
class SpoolReader {
 public:
  // NOT_FOUND if the file does not exist.
  static absl::StatusOr<std::unique_ptr<SpoolReader>> Open(const std::string& path,
                                                           RandomAccessEnv* env = RandomAccessEnv::Real());
  // Reads the records of `writer`, which must outlive the reader.
  explicit SpoolReader(const SpoolWriter* writer) : path_(writer->path_), writer_(writer) {}

  // Returns the next event; nullopt at the end of the file, at a torn tail, or at offset `limit`. After
  // nullopt, later calls return events that were written since. Errors are those of reading the file.
  absl::StatusOr<std::optional<internal::v1::WorkerEvent>> Next(int64_t limit = INT64_MAX);
  // Returns the offset of the next record.
  int64_t offset() const { return offset_; }
  // Moves to `offset`, the start of a record, and drops buffered bytes.
  void Seek(int64_t offset);

 private:
  SpoolReader(std::string path, std::unique_ptr<RandomAccessFile> file)
      : path_(std::move(path)), owned_file_(std::move(file)) {}
  // Makes the buffer hold at least `size` bytes from offset_ on. Returns false if the file has fewer before
  // `limit`.
  absl::StatusOr<bool> Fill(int64_t size, int64_t limit);

  const std::string path_;
  // Exactly one of the two is set.
  const std::unique_ptr<RandomAccessFile> owned_file_;
  const SpoolWriter* const writer_ = nullptr;
  int64_t offset_ = SpoolWriter::kFirstOffset;
  // The number of the event before offset_; 0: unknown.
  int64_t last_sequence_ = 0;
  // The file's bytes from buffer_offset_ on.
  std::string buffer_;
  int64_t buffer_offset_ = SpoolWriter::kFirstOffset;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SPOOL_H_
