#ifndef TANDEM_SERVER_WORKERS_UNCOMPRESSED_SERVER_H_
#define TANDEM_SERVER_WORKERS_UNCOMPRESSED_SERVER_H_

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/server_builder.h>

namespace tandem {

// Makes a server end calls with compressed messages with UNIMPLEMENTED, without inflating. gRPC 1.51 limits
// only the compressed size, and inflates up to a thousand times as much before anybody checks a token. Our
// clients do not compress.
inline void RefuseCompressedMessages(grpc::ServerBuilder* builder) {
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // Otherwise a message is inflated before its call is refused.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_UNCOMPRESSED_SERVER_H_
