#ifndef TANDEM_ENGINE_SCHEDULES_CURVE_H_
#define TANDEM_ENGINE_SCHEDULES_CURVE_H_

#include <cstdint>
#include <functional>

#include "tandem/v1/training.pb.h"

namespace tandem {

// The rate as a function of t, which counts steps or epochs from 0.
using Curve = std::function<double(int64_t t)>;

// What a schedule's message says, but for its warm-up; a plateau's is constant. All rates are multiplied by
// `scale`, but for the least ones. `length` is that of the training, at least 1, for messages that give none.
Curve MakeCurve(const v1::Schedule& schedule, double learning_rate, double scale, int64_t length);

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_CURVE_H_
