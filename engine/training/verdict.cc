#include "engine/training/verdict.h"

#include <array>
#include <cstdint>

#include "engine/base/status_macros.h"

namespace tandem {

absl::Status ShareVerdict(Communicator* communicator, Verdict* verdict) {
  const Plateau::State known = verdict->plateau.value_or(Plateau::State());
  std::array<double, 9> told = {static_cast<double>(verdict->end),
                                verdict->checkpoint ? 1.0 : 0.0,
                                verdict->best ? 1.0 : 0.0,
                                verdict->plateau.has_value() ? 1.0 : 0.0,
                                known.rate,
                                known.best.has_value() ? 1.0 : 0.0,
                                known.best.value_or(0),
                                static_cast<double>(known.bad_epochs),
                                static_cast<double>(known.cooldown_left)};
  TANDEM_RETURN_IF_ERROR(
      communicator->Broadcast({told.data(), static_cast<int64_t>(told.size()), DType::kFloat64}, 0));
  if (communicator->rank() == 0) return absl::OkStatus();
  *verdict = {.end = static_cast<v1::StateReason>(static_cast<int>(told[0])),
              .checkpoint = told[1] != 0,
              .best = told[2] != 0,
              .plateau = std::nullopt};
  if (told[3] == 0) return absl::OkStatus();
  Plateau::State plateau;
  plateau.rate = told[4];
  if (told[5] != 0) plateau.best = told[6];
  plateau.bad_epochs = static_cast<int64_t>(told[7]);
  plateau.cooldown_left = static_cast<int64_t>(told[8]);
  verdict->plateau = plateau;
  return absl::OkStatus();
}

}  // namespace tandem
