#ifndef TANDEM_ENGINE_TRAINING_VERDICT_H_
#define TANDEM_ENGINE_TRAINING_VERDICT_H_

#include <optional>

#include "absl/status/status.h"
#include "engine/backend/communicator.h"
#include "engine/schedules/plateau.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Rank 0's conclusions from the measurements after a step. All ranks act on them.
struct Verdict {
  // Why no step follows, or UNSPECIFIED.
  v1::StateReason end = v1::STATE_REASON_UNSPECIFIED;
  // Whether the replicas' state is kept, as a checkpoint and as the model with the best result.
  bool checkpoint = false;
  bool best = false;
  // The state of the learning rate, if it watches a measure.
  std::optional<Plateau::State> plateau = std::nullopt;

  bool keeps() const { return checkpoint || best; }
  bool ends() const { return end != v1::STATE_REASON_UNSPECIFIED; }
  bool pauses() const { return end == v1::STATE_REASON_PAUSE_REQUESTED; }
};

// Sends rank 0's verdict to the other ranks. All ranks must call it together.
absl::Status ShareVerdict(Communicator* communicator, Verdict* verdict);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_VERDICT_H_
