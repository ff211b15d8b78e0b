#ifndef TANDEM_SERVER_RPC_FILE_READER_H_
#define TANDEM_SERVER_RPC_FILE_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// Reads a file from an offset on, piece by piece. Not thread-safe.
class FileReader {
 public:
  // Bytes of one piece at most: large enough to be quick, well below gRPC's limit of 4 MiB a message.
  static constexpr int64_t kPieceBytes = 256 * 1024;

  explicit FileReader(std::string path) : path_(std::move(path)) {}
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // The next piece from `offset` on, empty where the file has no more now, or there is no file yet.
  absl::StatusOr<std::string> Read(int64_t offset);
  // Its size now; 0 where there is no file yet.
  absl::StatusOr<int64_t> Size();

 private:
  // False where there is no file.
  absl::StatusOr<bool> Open();

  const std::string path_;
  int fd_ = -1;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_FILE_READER_H_
