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
// Tasks and outputs stay well below this size.
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

absl::StatusOr<std::string> ToFrame(const google::protobuf::MessageLite& message) {
  const size_t length = message.ByteSizeLong();
  if (length > kLargest) {
    return absl::InternalError(
        absl::StrCat("cannot send a message: it has ", length, " bytes, more than ", kLargest));
  }
  std::string frame(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) frame[i] = static_cast<char>(length >> (8 * i));
  message.AppendToString(&frame);
  return frame;
}

absl::Status WriteFrame(const google::protobuf::MessageLite& message, int fd) {
  TANDEM_ASSIGN_OR_RETURN(const std::string frame, ToFrame(message));
  absl::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t written = write(fd, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "cannot write a message");
    if (written > 0) rest.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FrameReader::ReadFrom(int fd) {
  const size_t before = bytes_.size();
  bytes_.resize(before + kReadBytes);
  ssize_t count = 0;
  do {
    count = read(fd, bytes_.data() + before, kReadBytes);
  } while (count < 0 && errno == EINTR);
  bytes_.resize(before + (count > 0 ? count : 0));
  if (count < 0) return absl::ErrnoToStatus(errno, "cannot read a message");
  if (bytes_.size() >= kLengthBytes && LengthOf(bytes_) > kLargest) {
    return absl::DataLossError(
        absl::StrCat("cannot read a message: it has ", LengthOf(bytes_), " bytes, more than ", kLargest));
  }
  return count > 0;
}

absl::StatusOr<bool> FrameReader::Take(google::protobuf::MessageLite* message) {
  if (bytes_.size() < kLengthBytes) return false;
  const size_t length = LengthOf(bytes_);
  if (length > kLargest || bytes_.size() < kLengthBytes + length) return false;
  const bool parsed = message->ParseFromArray(bytes_.data() + kLengthBytes, static_cast<int>(length));
  bytes_.erase(0, kLengthBytes + length);
  if (!parsed) return absl::DataLossError("cannot read a message: its bytes have another form");
  return true;
}

absl::StatusOr<bool> FrameReader::Await(int fd, google::protobuf::MessageLite* message) {
  for (;;) {
    TANDEM_ASSIGN_OR_RETURN(const bool taken, Take(message));
    if (taken) return true;
    TANDEM_ASSIGN_OR_RETURN(const bool more, ReadFrom(fd));
    if (!more) return false;
  }
}

}  // namespace tandem
