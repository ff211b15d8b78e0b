#ifndef TANDEM_SERVER_WORKERS_UNCOMPRESSED_SERVER_H_
#define TANDEM_SERVER_WORKERS_UNCOMPRESSED_SERVER_H_

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/server_builder.h>

namespace tandem {

// Has a server end calls whose messages are compressed, with UNIMPLEMENTED, and inflate none: gRPC 1.51
// limits what arrives and not what it becomes, a thousand times as much, and inflates before anybody looks at
// a token. Our clients compress nothing.
inline void RefuseCompressedMessages(grpc::ServerBuilder* builder) {
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // Without it a message is inflated before its call is refused.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_UNCOMPRESSED_SERVER_H_
