#ifndef TANDEM_ENGINE_COLLECTIVES_OFFER_H_
#define TANDEM_ENGINE_COLLECTIVES_OFFER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"

namespace tandem {

// The calls of a communicator that ranks make together.
enum class CollectiveCall : uint8_t { kSum, kAverage, kBroadcast, kBarrier };

// What a rank brings to a call.
struct Offer {
  CollectiveCall call = CollectiveCall::kBarrier;
  DType dtype = DType::kFloat32;
  int32_t root = 0;  // Of a broadcast.
  int64_t elements = 0;
};

// INVALID_ARGUMENT where the offers of all ranks, in their order, differ, or where what they agree on cannot
// be done: the same for all ranks, as they all see the same.
absl::Status CheckOffers(absl::Span<const Offer> offers);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_OFFER_H_
