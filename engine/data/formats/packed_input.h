#ifndef TANDEM_ENGINE_DATA_FORMATS_PACKED_INPUT_H_
#define TANDEM_ENGINE_DATA_FORMATS_PACKED_INPUT_H_

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/unique_fd.h"

namespace tandem {

// The bytes of a compressed file, in pieces. Not thread-safe.
class PackedInput {
 public:
  explicit PackedInput(UniqueFd fd) : fd_(std::move(fd)), piece_(kPieceBytes) {}

  // Reads the next piece, and returns its number of bytes. Returns 0 at the end of the file. INVALID_ARGUMENT
  // without a path if the file cannot be read.
  absl::StatusOr<int64_t> Next() {
    const ssize_t count = ::read(fd_.get(), piece_.data(), piece_.size());
    if (count >= 0) return count;
    return absl::InvalidArgumentError(absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  // The bytes of the piece. Valid until the next call of Next.
  char* data() { return piece_.data(); }

 private:
  static constexpr int64_t kPieceBytes = int64_t{1} << 18;
  const UniqueFd fd_;
  std::vector<char> piece_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_PACKED_INPUT_H_
