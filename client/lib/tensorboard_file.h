#ifndef TANDEM_CLIENT_LIB_TENSORBOARD_FILE_H_
#define TANDEM_CLIENT_LIB_TENSORBOARD_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem::client {

// Returns the CRC-32C (Castagnoli) of the data.
uint32_t Crc32c(absl::string_view data);

// A TensorBoard event file of a job: a copy of the scalars in the job's event log. A value is a float, and
// its step counts optimizer steps. Each event of the log makes at most one record. The record holds the
// event's sequence number, so an interrupted copy continues after its last whole record. Holds a lock on the
// file. Not thread-safe.
class TensorBoardFile {
 public:
  // Opens or creates the file, and cuts off a torn record at its end. A new file begins with `settings`,
  // shown as text, and with the set fields of job.spec as hyperparameters. FAILED_PRECONDITION if the file
  // cannot be written, or is not an event file of Tandem. ABORTED if another process writes the file.
  static absl::StatusOr<std::unique_ptr<TensorBoardFile>> Open(const std::string& path, const v1::Job& job,
                                                               const std::string& settings);
  ~TensorBoardFile();
  TensorBoardFile(const TensorBoardFile&) = delete;
  TensorBoardFile& operator=(const TensorBoardFile&) = delete;

  // Returns the newest event in the file, or 0.
  int64_t last_sequence() const { return last_sequence_; }

  // Adds the event's scalars, if any. Ignores an event that is not newer than last_sequence().
  absl::Status Add(const v1::JobEvent& event);
  // Writes all added scalars to the disk.
  absl::Status Sync();

 private:
  TensorBoardFile(std::string path, int file) : path_(std::move(path)), file_(file) {}

  // Finds last_sequence_, and cuts the file after its last whole record. `beginning` is the content of a new
  // file.
  absl::Status Recover(absl::string_view beginning);
  absl::Status Flush();
  absl::Status Error(absl::string_view what) const;

  const std::string path_;
  const int file_;
  // Records that are not yet written.
  std::string buffer_;
  int64_t last_sequence_ = 0;
  bool empty_ = true;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_TENSORBOARD_FILE_H_
