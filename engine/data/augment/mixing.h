#ifndef TANDEM_ENGINE_DATA_AUGMENT_MIXING_H_
#define TANDEM_ENGINE_DATA_AUGMENT_MIXING_H_

#include "engine/base/philox.h"

namespace tandem {

// A way to mix two samples. T is uint8_t or float. Immutable, so any number of threads may use it.
template <typename T>
class Mixing {
 public:
  virtual ~Mixing() = default;
  // Mixes `partner` into `sample` by what it draws from `random`; returns how much of the sample's own is
  // left, in [0, 1]: the weight of its class.
  virtual double Apply(RandomStream& random, const T* partner, T* sample) const = 0;
};

// From Beta(alpha, alpha), alpha above 0: by two numbers from the gamma distribution (Marsaglia and Tsang
// 2000, "A Simple Method for Generating Gamma Variables").
double DrawBeta(RandomStream& random, double alpha);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_MIXING_H_
