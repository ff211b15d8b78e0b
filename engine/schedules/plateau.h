#ifndef TANDEM_ENGINE_SCHEDULES_PLATEAU_H_
#define TANDEM_ENGINE_SCHEDULES_PLATEAU_H_

#include <cstdint>
#include <optional>

#include "tandem/v1/training.pb.h"

namespace tandem {

// A rate that drops whenever a measure stops improving, as torch.optim.lr_scheduler.ReduceLROnPlateau's.
class Plateau {
 public:
  Plateau(const v1::PlateauSchedule& spec, double rate) : spec_(spec), rate_(rate) {}

  double rate() const { return rate_; }
  // After each epoch.
  void Observe(double measure);

 private:
  bool Improves(double measure) const;

  const v1::PlateauSchedule spec_;
  double rate_;
  std::optional<double> best_;
  int64_t bad_epochs_ = 0;
  int64_t cooldown_left_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_PLATEAU_H_
