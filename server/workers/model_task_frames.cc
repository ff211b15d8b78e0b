#include "server/workers/model_task_frames.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kLengthBytes = 4;
// Workers stay well below this size.
constexpr uint32_t kLargest = 32 << 20;
constexpr size_t kReadBytes = 1 << 16;

uint32_t LengthOf(absl::string_view bytes) {
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return length;
}

}  // namespace

absl::Status WriteModelTaskOutput(const internal::v1::ModelTaskOutput& output, int fd) {
  std::string frame(kLengthBytes, '\0');
  const size_t length = output.ByteSizeLong();
  if (length > kLargest)
    return absl::InternalError(
        absl::StrCat("cannot send an output: it has ", length, " bytes, more than ", kLargest));
  for (size_t i = 0; i < kLengthBytes; ++i) frame[i] = static_cast<char>(length >> (8 * i));
  output.AppendToString(&frame);
  absl::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t written = write(fd, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "cannot write an output");
    if (written > 0) rest.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ModelTaskFrameReader::ReadFrom(int fd) {
  const size_t before = bytes_.size();
  bytes_.resize(before + kReadBytes);
  ssize_t count = 0;
  do {
    count = read(fd, bytes_.data() + before, kReadBytes);
  } while (count < 0 && errno == EINTR);
  bytes_.resize(before + (count > 0 ? count : 0));
  if (count < 0) return absl::ErrnoToStatus(errno, "cannot read from a worker");
  if (bytes_.size() >= kLengthBytes && LengthOf(bytes_) > kLargest) {
    return absl::DataLossError(absl::StrCat("cannot read a worker's output: it has ", LengthOf(bytes_),
                                            " bytes, more than ", kLargest));
  }
  return count > 0;
}

std::optional<internal::v1::ModelTaskOutput> ModelTaskFrameReader::Take() {
  if (bytes_.size() < kLengthBytes) return std::nullopt;
  const size_t length = LengthOf(bytes_);
  if (length > kLargest || bytes_.size() < kLengthBytes + length) return std::nullopt;
  internal::v1::ModelTaskOutput output;
  const bool parsed = output.ParseFromArray(bytes_.data() + kLengthBytes, static_cast<int>(length));
  bytes_.erase(0, kLengthBytes + length);
  if (!parsed) {
    output.Clear();
    output.mutable_end()->set_code(static_cast<int>(absl::StatusCode::kDataLoss));
    output.mutable_end()->set_message("cannot read a worker's output");
  }
  return output;
}

}  // namespace tandem
