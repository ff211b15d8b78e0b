#include "engine/graph/ops/nadam_factors.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(NadamFactorsTest, TheClosedFormIsTheRunningProduct) {
  for (const double beta1 : {0.0, 0.5, 0.9, 0.999999}) {
    for (const double momentum_decay : {0.0, 1e-300, 1e-12, 0.004, 1.0, 1e4, 1e300}) {
      double product = 1;
      double t = 0;
      for (const double last : {1, 2, 10, 1000, 100000}) {
        while (t < last) product *= NadamMu(beta1, momentum_decay, ++t);
        SCOPED_TRACE(testing::Message() << "beta1 " << beta1 << " decay " << momentum_decay << " t " << t);
        // The running product's own rounding grows with t.
        EXPECT_NEAR(NadamProduct(beta1, momentum_decay, t), product, 1e-16 + 1e-15 * t * product);
        const double next_mu = NadamMu(beta1, momentum_decay, t + 1);
        const NadamFactors factors = NadamFactorsAt(beta1, momentum_decay, t);
        EXPECT_NEAR(factors.moment * (1 - product * next_mu), next_mu, 1e-10);
        EXPECT_NEAR(factors.gradient * (1 - product), 1 - NadamMu(beta1, momentum_decay, t), 1e-10);
      }
    }
  }
}

}  // namespace
}  // namespace tandem
