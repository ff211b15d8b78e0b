#ifndef TANDEM_SERVER_RPC_REQUEST_BYTES_H_
#define TANDEM_SERVER_RPC_REQUEST_BYTES_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

// Requests arrive as bytes and are parsed only after the caller is known. A message may take fifty times the
// memory of its bytes, and time to parse.

namespace tandem {

// Requests of at most this many bytes are parsed at once, on gRPC's few threads. Larger requests are parsed
// in their users' turns.
inline constexpr int64_t kSmallRequestBytes = 16 << 10;
// The most bytes of a request, except requests with samples.
inline constexpr int64_t kMostRequestBytes = (2 << 20) + (64 << 10);
// The most fields of a request, nested messages included. Bounds the message's memory.
inline constexpr int64_t kMostRequestFields = 300'000;
// The most fields of a streamed message. Such messages are parsed on gRPC's threads, whatever their size.
inline constexpr int64_t kMostStreamedFields = 1000;

// Parses a request of at most `most_bytes` and `most_fields`. RESOURCE_EXHAUSTED: the request has more.
// INVALID_ARGUMENT: the bytes are no such request, or nested too deeply.
absl::Status ParseRequest(grpc::ByteBuffer bytes, int64_t most_bytes, google::protobuf::Message* request,
                          int64_t most_fields = kMostRequestFields);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_REQUEST_BYTES_H_
