#include "engine/initializers/initializer.h"

#include <algorithm>
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

// The mean, variance and extremes of 100,000 values.
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

TEST(InitializerTest, LecunHasItsVariance) {
  v1::Initializer initializer;
  initializer.mutable_lecun();
  const Moments uniform(initializer, {.in = 50, .out = 3});
  EXPECT_NEAR(uniform.mean, 0, 0.002);
  EXPECT_NEAR(uniform.variance, 0.02, 0.0004);
  EXPECT_NEAR(uniform.high, std::sqrt(3.0 / 50), 1e-4);
  initializer.mutable_lecun()->set_distribution(v1::INITIALIZER_DISTRIBUTION_NORMAL);
  const Moments normal(initializer, {.in = 50, .out = 3});
  EXPECT_NEAR(normal.variance, 0.02, 0.0004);
  EXPECT_GT(normal.high, 0.4);
}

TEST(InitializerTest, TruncatedNormalHasNoTails) {
  v1::Initializer initializer;
  initializer.mutable_truncated_normal()->set_mean(1);
  // Within two standard deviations, the default, the variance is 0.774 of the whole variance.
  const Moments moments(initializer);
  EXPECT_NEAR(moments.mean, 1, 2e-4);
  EXPECT_NEAR(moments.variance, 0.7737e-4, 0.01e-4);
  EXPECT_GE(moments.low, 0.98F);
  EXPECT_LE(moments.high, 1.02F);
  EXPECT_LT(moments.low, 0.9801F);
  // Far out: the mean and the variance of the standard normal distribution above 2.5.
  initializer.mutable_truncated_normal()->set_mean(0);
  initializer.mutable_truncated_normal()->set_standard_deviation(1);
  initializer.mutable_truncated_normal()->set_low(2.5);
  initializer.mutable_truncated_normal()->set_high(1e6);
  const Moments tail(initializer);
  EXPECT_NEAR(tail.mean, 2.8227, 0.004);
  EXPECT_NEAR(tail.variance, 0.0892, 0.002);
  EXPECT_GE(tail.low, 2.5F);
}

// Checks the products of all pairs of rows, or of columns, of a matrix [rows, columns].
void ExpectOrthogonal(const Shape& shape, double gain) {
  v1::Initializer initializer;
  initializer.mutable_orthogonal()->set_gain(gain);
  const Tensor tensor = Initialize(Filled(initializer), shape, {}, 5, "conv2d_1.weight");
  const int64_t rows = shape[0];
  const int64_t columns = shape.elements() / rows;
  const bool by_rows = rows <= columns;
  const auto at = [&](int64_t vector, int64_t k) {
    return double{tensor.data<float>()[by_rows ? vector * columns + k : k * columns + vector]};
  };
  for (int64_t i = 0; i < std::min(rows, columns); ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double product = 0;
      for (int64_t k = 0; k < std::max(rows, columns); ++k) product += at(i, k) * at(j, k);
      EXPECT_NEAR(product, i == j ? gain * gain : 0, 1e-6) << i << ", " << j;
    }
  }
}

TEST(InitializerTest, OrthogonalIs) {
  ExpectOrthogonal(Shape({12, 4, 3, 3}), 1);
  ExpectOrthogonal(Shape({50, 7}), 2);
  ExpectOrthogonal(Shape({64, 64}), 1);
  ExpectOrthogonal(Shape({1, 1}), 1);
}

// An element of many drawn matrices is like a coordinate of a point on a sphere: mean 0, variance 1 / length.
TEST(InitializerTest, OrthogonalIsDrawnUniformly) {
  v1::Initializer initializer;
  initializer.mutable_orthogonal();
  initializer = Filled(initializer);
  constexpr int kDraws = 4000;
  double mean = 0;
  double square = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Tensor tensor = Initialize(initializer, Shape({4, 4}), {}, draw, "a");
    const double corner = tensor.data<float>()[15];
    mean += corner / kDraws;
    square += corner * corner / kDraws;
  }
  EXPECT_NEAR(mean, 0, 0.04);
  EXPECT_NEAR(square, 0.25, 0.02);
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
  initializer.mutable_truncated_normal()->set_standard_deviation(0);
  EXPECT_EQ(GetFieldViolations(CheckInitializer(initializer))[0].field,
            "truncated_normal.standard_deviation");
  initializer.mutable_truncated_normal()->set_standard_deviation(1);
  initializer.mutable_truncated_normal()->set_low(5);
  initializer.mutable_truncated_normal()->set_high(6);
  EXPECT_EQ(GetFieldViolations(CheckInitializer(initializer))[0].field, "truncated_normal.high");
  initializer.mutable_constant()->set_value(1e300);
  EXPECT_EQ(GetFieldViolations(CheckInitializer(initializer))[0].field, "constant.value");
  initializer.mutable_orthogonal()->set_gain(std::nan(""));
  EXPECT_EQ(GetFieldViolations(CheckInitializer(initializer))[0].field, "orthogonal.gain");
}

}  // namespace
}  // namespace tandem
