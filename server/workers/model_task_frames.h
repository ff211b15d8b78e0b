#ifndef TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_
#define TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"

namespace tandem {

// The form of tasks and outputs in a model worker's pipes: each message after its length in 4 bytes,
// little-endian.

// Returns a message in this form. INTERNAL: the message has more than 32 MiB.
absl::StatusOr<std::string> ToFrame(const google::protobuf::MessageLite& message);

// Writes a message to an open file. Blocks if a pipe is full. Errors: the other end is closed; or as ToFrame.
absl::Status WriteFrame(const google::protobuf::MessageLite& message, int fd);

// Assembles messages from a pipe's bytes. Not thread-safe.
class FrameReader {
 public:
  // Reads available bytes once; blocks if there are none. Returns false at the pipe's end. DATA_LOSS if a
  // message would have more than 32 MiB.
  absl::StatusOr<bool> ReadFrom(int fd);
  // Takes the next complete message. Returns false if there is none. DATA_LOSS if the bytes are no such
  // message.
  absl::StatusOr<bool> Take(google::protobuf::MessageLite* message);
  // Takes the next message, and reads until it is complete. Returns false at the pipe's end. Errors as above.
  absl::StatusOr<bool> Await(int fd, google::protobuf::MessageLite* message);
  // Returns whether all bytes that were read have been taken.
  bool IsEmpty() const { return bytes_.empty(); }

 private:
  std::string bytes_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_MODEL_TASK_FRAMES_H_
