#include "engine/initializers/initializer.h"

#include <cmath>

#include "engine/base/field_violations.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

v1::Initializer Filled(v1::Initializer initializer) {
  FillInitializerDefaults(&initializer);
  EXPECT_TRUE(CheckInitializer(initializer).ok());
  return initializer;
}

// Mean, variance and extremes of 100,000 values.
struct Moments {
  explicit Moments(const v1::Initializer& initializer, Fans fans = {}) {
    const Tensor tensor = Initialize(Filled(initializer), Shape({100, 1000}), fans, 5, "dense_1.weight");
    low = high = tensor.data<float>()[0];
    for (const float value : tensor.data<float>()) {
      mean += value / 1e5;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    for (const float value : tensor.data<float>()) variance += (value - mean) * (value - mean) / 1e5;
  }
  double mean = 0, variance = 0;
  float low = 0, high = 0;
};

TEST(InitializerTest, XavierHasItsVariance) {
  v1::Initializer initializer;
  initializer.mutable_xavier();
  const Moments uniform(initializer, {.in = 30, .out = 70});
  EXPECT_NEAR(uniform.mean, 0, 0.002);
  EXPECT_NEAR(uniform.variance, 0.02, 0.0004);
  EXPECT_NEAR(uniform.high, std::sqrt(6.0 / 100), 1e-4);
  initializer.mutable_xavier()->set_distribution(v1::INITIALIZER_DISTRIBUTION_NORMAL);
  const Moments normal(initializer, {.in = 30, .out = 70});
  EXPECT_NEAR(normal.variance, 0.02, 0.0004);
  EXPECT_GT(normal.high, 0.4);
}

TEST(InitializerTest, HeHasItsVariance) {
  v1::Initializer initializer;
  initializer.mutable_he();
  EXPECT_NEAR(Moments(initializer, Fans{.in = 50, .out = 3}).variance, 0.04, 0.0008);
}

TEST(InitializerTest, NormalUniformAndZeros) {
  v1::Initializer initializer;
  initializer.mutable_normal()->set_mean(1);
  EXPECT_NEAR(Moments(initializer).mean, 1, 1e-3);
  EXPECT_NEAR(Moments(initializer).variance, 1e-4, 2e-6);
  initializer.mutable_uniform()->set_high(0.25);
  EXPECT_GE(Moments(initializer).low, -0.05F);
  EXPECT_LT(Moments(initializer).high, 0.25F);
  EXPECT_NEAR(Moments(initializer).mean, 0.1, 1e-3);
  initializer.mutable_zeros();
  EXPECT_EQ(Moments(initializer).low, 0);
  EXPECT_EQ(Moments(initializer).high, 0);
}

TEST(InitializerTest, DependsOnSeedAndNameAlone) {
  v1::Initializer initializer;
  initializer.mutable_he();
  initializer = Filled(initializer);
  const auto first = [&](uint64_t seed, const char* name) {
    return Initialize(initializer, Shape({4}), {}, seed, name).data<float>()[0];
  };
  EXPECT_EQ(first(1, "a.weight"), first(1, "a.weight"));
  EXPECT_NE(first(1, "a.weight"), first(2, "a.weight"));
  EXPECT_NE(first(1, "a.weight"), first(1, "b.weight"));
}

TEST(InitializerTest, NamesTheFieldsAtFault) {
  v1::Initializer initializer;
  initializer.mutable_uniform()->set_low(1);
  EXPECT_EQ(GetFieldViolations(CheckInitializer(initializer))[0].field, "uniform.high");
  initializer.mutable_normal()->set_standard_deviation(std::nan(""));
  EXPECT_EQ(GetFieldViolations(CheckInitializer(initializer))[0].field, "normal.standard_deviation");
}

}  // namespace
}  // namespace tandem
