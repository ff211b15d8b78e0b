#ifndef TANDEM_ENGINE_DATA_FORMATS_PACKED_INPUT_H_
#define TANDEM_ENGINE_DATA_FORMATS_PACKED_INPUT_H_

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tandem {

// The bytes of a compressed file, in pieces. Owns and closes the file descriptor. Not thread-safe.
class PackedInput {
 public:
  explicit PackedInput(int fd) : fd_(fd), piece_(kPieceBytes) {}
  ~PackedInput() { ::close(fd_); }
  PackedInput(const PackedInput&) = delete;
  PackedInput& operator=(const PackedInput&) = delete;

  // Reads the next piece, and returns its number of bytes. Returns 0 at the end of the file. INVALID_ARGUMENT
  // without a path if the file cannot be read.
  absl::StatusOr<int64_t> Next() {
    const ssize_t count = ::read(fd_, piece_.data(), piece_.size());
    if (count >= 0) return count;
    return absl::InvalidArgumentError(absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  // The bytes of the piece. Valid until the next call of Next.
  char* data() { return piece_.data(); }

 private:
  static constexpr int64_t kPieceBytes = int64_t{1} << 18;
  const int fd_;
  std::vector<char> piece_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_PACKED_INPUT_H_
