#ifndef TANDEM_ENGINE_SCHEDULES_CURVE_H_
#define TANDEM_ENGINE_SCHEDULES_CURVE_H_

#include <cstdint>
#include <functional>

#include "tandem/v1/training.pb.h"

namespace tandem {

// The rate as a function of t. t counts steps or epochs from 0.
using Curve = std::function<double(int64_t t)>;

// Returns the curve of a schedule's message without its warm-up. A plateau's curve is constant. `scale`
// multiplies all rates except minimum rates. `length` is the training's length, at least 1, for messages
// without their own.
Curve MakeCurve(const v1::Schedule& schedule, double learning_rate, double scale, int64_t length);

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_CURVE_H_
