#ifndef TANDEM_SERVER_RPC_OPEN_CALLS_H_
#define TANDEM_SERVER_RPC_OPEN_CALLS_H_

#include "server/rpc/active_streams.h"
#include "server/rpc/unary_counts.h"

namespace tandem {

// The open calls of a server.
struct OpenCalls {
  explicit OpenCalls(const UnaryCounts::Limits& limits) : counts(limits) {}

  ActiveStreams streams;
  // Unary calls. A shutdown ends none of them.
  ActiveStreams unary;
  UnaryCounts counts;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_OPEN_CALLS_H_
