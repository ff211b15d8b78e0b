#ifndef TANDEM_SERVER_RPC_FILE_READER_H_
#define TANDEM_SERVER_RPC_FILE_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/unique_fd.h"

namespace tandem {

// Reads a file piece by piece. Not thread-safe.
class FileReader {
 public:
  // The most bytes of a piece: large enough to be fast, and well below gRPC's limit of 4 MiB per message.
  static constexpr int64_t kPieceBytes = 256 * 1024;

  explicit FileReader(std::string path) : path_(std::move(path)) {}

  // Returns the next piece from `offset` on. Empty at the file's current end, or if the file does not exist
  // yet.
  absl::StatusOr<std::string> Read(int64_t offset);
  // Returns the file's current size; 0 if it does not exist yet.
  absl::StatusOr<int64_t> Size();

 private:
  // Returns false if the file does not exist.
  absl::StatusOr<bool> Open();

  const std::string path_;
  UniqueFd fd_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_FILE_READER_H_
