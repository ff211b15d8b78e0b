#ifndef TANDEM_SERVER_RPC_REQUEST_BYTES_H_
#define TANDEM_SERVER_RPC_REQUEST_BYTES_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

// Requests come as bytes, and become messages once it is known who calls: a message may take fifty times the
// memory of its bytes, and some time.

namespace tandem {

// A request of so many bytes is parsed at once, on gRPC's threads, of which there are few; a larger one in
// its user's turn.
inline constexpr int64_t kSmallRequestBytes = 16 << 10;
// The most bytes of a request, but for those that carry samples.
inline constexpr int64_t kMostRequestBytes = (2 << 20) + (64 << 10);
// The most fields of a request, with those of the messages in it: what bounds the memory of the message.
inline constexpr int64_t kMostRequestFields = 300'000;
// The most fields of a message that a client streams: these are parsed on gRPC's threads, whatever their
// size.
inline constexpr int64_t kMostStreamedFields = 1000;

// Parses a request of at most so many bytes and fields. RESOURCE_EXHAUSTED: the request has more.
// INVALID_ARGUMENT: it is none of this method, or nested too deeply.
absl::Status ParseRequest(grpc::ByteBuffer bytes, int64_t most_bytes, google::protobuf::Message* request,
                          int64_t most_fields = kMostRequestFields);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_REQUEST_BYTES_H_
