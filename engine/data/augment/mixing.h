#ifndef TANDEM_ENGINE_DATA_AUGMENT_MIXING_H_
#define TANDEM_ENGINE_DATA_AUGMENT_MIXING_H_

#include "engine/base/philox.h"

namespace tandem {

// A way to mix two samples. T is uint8_t or float. Immutable, so thread-safe.
template <typename T>
class Mixing {
 public:
  virtual ~Mixing() = default;
  // Mixes `partner` into `sample`, with numbers from `random`. Returns the remaining part of the sample, in
  // [0, 1]. It is the weight of the sample's class.
  virtual double Apply(RandomStream& random, const T* partner, T* sample) const = 0;
};

// The least alpha of DrawBeta. With far smaller alphas, logarithms are infinite, and draws are no numbers.
inline constexpr double kLeastAlpha = 1e-6;

// Draws from Beta(alpha, alpha), with alpha at least kLeastAlpha. Uses two numbers from the gamma
// distribution (Marsaglia and Tsang 2000, "A Simple Method for Generating Gamma Variables").
double DrawBeta(RandomStream& random, double alpha);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_MIXING_H_
