#ifndef TANDEM_ENGINE_COLLECTIVES_OFFER_H_
#define TANDEM_ENGINE_COLLECTIVES_OFFER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"

namespace tandem {

// The calls of a communicator that all ranks make together.
enum class CollectiveCall : uint8_t { kSum, kAverage, kBroadcast, kBarrier };

// A rank's arguments of a call.
struct Offer {
  CollectiveCall call = CollectiveCall::kBarrier;
  DType dtype = DType::kFloat32;
  int32_t root = 0;  // Of a broadcast.
  int64_t elements = 0;
};

// INVALID_ARGUMENT if the offers of all ranks, in order, differ, or if the call is impossible. All ranks get
// the same result, because all see the same offers.
absl::Status CheckOffers(absl::Span<const Offer> offers);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_OFFER_H_
