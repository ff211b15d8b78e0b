#ifndef TANDEM_ENGINE_SCHEDULES_PLATEAU_H_
#define TANDEM_ENGINE_SCHEDULES_PLATEAU_H_

#include <cstdint>
#include <optional>

#include "tandem/v1/training.pb.h"

namespace tandem {

// A rate that drops when a measure stops improving, as torch.optim.lr_scheduler.ReduceLROnPlateau.
class Plateau {
 public:
  Plateau(const v1::PlateauSchedule& spec, double rate);

  // The state between epochs.
  struct State {
    double rate = 0;
    std::optional<double> best;
    int64_t bad_epochs = 0;
    int64_t cooldown_left = 0;
  };

  double rate() const { return state_.rate; }
  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }
  // Call it after each epoch.
  void Observe(double measure, bool smaller_is_better);

 private:
  bool Improves(double measure, bool smaller_is_better) const;

  const v1::PlateauSchedule spec_;
  State state_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_PLATEAU_H_
