#include "engine/data/augment/mixing.h"

#include <cmath>

namespace tandem {
namespace {

// Returns the logarithm of a number from Gamma(alpha, 1). Numbers of a small alpha are often too small for a
// double.
double DrawLogGamma(RandomStream& random, double alpha) {
  if (alpha < 1) return DrawLogGamma(random, alpha + 1) + std::log(1 - random.NextUniform()) / alpha;
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.NextNormal();
    const double v = std::pow(1 + c * x, 3);
    if (!(v > 0)) continue;
    const double u = 1 - random.NextUniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d) + std::log(v);
  }
}

}  // namespace

double DrawBeta(RandomStream& random, double alpha) {
  const double a = DrawLogGamma(random, alpha);
  const double b = DrawLogGamma(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

}  // namespace tandem
