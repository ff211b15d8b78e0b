#include "engine/initializers/initializer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/philox.h"

namespace tandem {
namespace {

// The largest number of a parameter, which is float32.
constexpr double kLargest = std::numeric_limits<float>::max();

// FNV-1a (Fowler, Noll and Vo), 64 bits. The function must never change, because it decides initial weights.
uint64_t HashName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Returns the share of the standard normal distribution between two numbers.
double NormalShare(double low, double high) {
  return (std::erf(high / std::sqrt(2.0)) - std::erf(low / std::sqrt(2.0))) / 2;
}

void FillUniform(RandomStream& random, double low, double high, absl::Span<float> values) {
  for (float& value : values) value = static_cast<float>(low + (high - low) * random.NextUniform());
}

void FillNormal(RandomStream& random, double mean, double deviation, absl::Span<float> values) {
  for (float& value : values) value = static_cast<float>(mean + deviation * random.NextNormal());
}

void FillWithVariance(RandomStream& random, v1::InitializerDistribution distribution, double variance,
                      absl::Span<float> values) {
  if (distribution == v1::INITIALIZER_DISTRIBUTION_NORMAL) {
    FillNormal(random, 0, std::sqrt(variance), values);
  } else {
    const double limit = std::sqrt(3 * variance);
    FillUniform(random, -limit, limit, values);
  }
}

// Draws without the tails. `low` is below `high`, and a part of the distribution is between them.
void FillTruncatedNormal(RandomStream& random, const v1::TruncatedNormalInitializer& normal,
                         absl::Span<float> values) {
  // The largest possible draw, in standard deviations.
  constexpr double kFarthest = 9;
  const double deviation = normal.standard_deviation();
  const double low = std::max((normal.low() - normal.mean()) / deviation, -kFarthest);
  const double high = std::min((normal.high() - normal.mean()) / deviation, kFarthest);
  // If most normal numbers would be rejected, uniform numbers are drawn and accepted by their density,
  // relative to the largest density.
  const bool narrow = NormalShare(low, high) < 0.25;
  const double nearest = low > 0 ? low : high < 0 ? high : 0;
  for (float& value : values) {
    double number = 0;
    bool taken = false;
    while (!taken) {
      if (narrow) {
        number = low + (high - low) * random.NextUniform();
        taken = random.NextUniform() < std::exp((nearest * nearest - number * number) / 2);
      } else {
        number = random.NextNormal();
        taken = number >= low && number <= high;
      }
    }
    value = static_cast<float>(normal.mean() + deviation * number);
  }
}

// Returns the rows of a weight that is taken as a matrix.
int64_t RowsOf(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

// Adds in eight sums, so that the processor need not wait for each addition.
double DotProduct(const double* a, const double* b, int64_t length) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= length; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < length; ++i) sums[0] += a[i] * b[i];
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

// Fills in an orthogonal matrix [rows, columns], by Gram and Schmidt: normal vectors minus their parts along
// earlier vectors. It works on rows, or on columns if there are fewer. It runs twice, because the second run
// removes the rounding errors.
void FillOrthogonal(RandomStream& random, double gain, int64_t rows, int64_t columns,
                    absl::Span<float> values) {
  const bool by_rows = rows <= columns;
  const int64_t count = std::min(rows, columns);
  const int64_t length = std::max(rows, columns);
  std::vector<double> vectors(count * length);
  for (int64_t i = 0; i < count; ++i) {
    double* own = vectors.data() + i * length;
    for (int64_t k = 0; k < length; ++k) own[k] = random.NextNormal();
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* other = vectors.data() + j * length;
        const double along = DotProduct(own, other, length);
        for (int64_t k = 0; k < length; ++k) own[k] -= along * other[k];
      }
      const double norm = std::sqrt(DotProduct(own, own, length));
      for (int64_t k = 0; k < length; ++k) own[k] /= norm;
    }
    for (int64_t k = 0; k < length; ++k) {
      values[by_rows ? i * columns + k : k * columns + i] = static_cast<float>(gain * own[k]);
    }
  }
}

template <typename Message>
void FillDistribution(Message* message) {
  if (message->distribution() == v1::INITIALIZER_DISTRIBUTION_UNSPECIFIED) {
    message->set_distribution(v1::INITIALIZER_DISTRIBUTION_UNIFORM);
  }
}

void CheckDistribution(absl::string_view kind, v1::InitializerDistribution distribution,
                       FieldViolations& violations) {
  if (v1::InitializerDistribution_IsValid(distribution)) return;
  violations.Add(absl::StrCat(kind, ".distribution"),
                 absl::StrCat("is ", static_cast<int>(distribution), ", which is no distribution"));
}

void CheckDeviation(absl::string_view field, double deviation, double least, FieldViolations& violations) {
  if (deviation >= least && deviation <= kLargest) return;
  violations.Add(field, absl::StrCat("is ", deviation, "; it must be finite in float32 and ",
                                     least > 0 ? "above 0" : "at least 0"));
}

void CheckFinite(absl::string_view field, double value, FieldViolations& violations) {
  if (std::abs(value) <= kLargest) return;
  violations.Add(field, absl::StrCat("is ", value, "; it must be finite in float32"));
}

void CheckTruncatedNormal(const v1::TruncatedNormalInitializer& normal, FieldViolations& violations) {
  constexpr double kLeastShare = 1e-3;
  FieldViolations found;
  CheckFinite("mean", normal.mean(), found);
  CheckDeviation("standard_deviation", normal.standard_deviation(), std::numeric_limits<double>::min(),
                 found);
  CheckFinite("low", normal.low(), found);
  CheckFinite("high", normal.high(), found);
  if (found.empty() && normal.high() <= normal.low()) {
    found.Add("high", absl::StrCat("is ", normal.high(), "; it must be above low, ", normal.low()));
  } else if (found.empty()) {
    const double share = NormalShare((normal.low() - normal.mean()) / normal.standard_deviation(),
                                     (normal.high() - normal.mean()) / normal.standard_deviation());
    if (!(share >= kLeastShare)) {
      found.Add("high",
                absl::StrCat("is ", normal.high(), " and low ", normal.low(), "; only ", share,
                             " of the distribution lies between them, but at least ", kLeastShare, " must"));
    }
  }
  violations.AddAll("truncated_normal", found.ToStatus());
}

}  // namespace

uint64_t SeedOf(uint64_t seed, absl::string_view name) {
  const uint64_t hash = HashName(name);
  RandomStream random(seed, RandomPurpose::kInitializer, hash >> 32, hash & 0xFFFFFFFF);
  return random.Next64();
}

void FillInitializerDefaults(v1::Initializer* initializer) {
  switch (initializer->kind_case()) {
    case v1::Initializer::kXavier:
      FillDistribution(initializer->mutable_xavier());
      break;
    case v1::Initializer::kHe:
      FillDistribution(initializer->mutable_he());
      break;
    case v1::Initializer::kNormal:
      if (!initializer->normal().has_standard_deviation()) {
        initializer->mutable_normal()->set_standard_deviation(0.01);
      }
      break;
    case v1::Initializer::kUniform:
      if (!initializer->uniform().has_low()) initializer->mutable_uniform()->set_low(-0.05);
      if (!initializer->uniform().has_high()) initializer->mutable_uniform()->set_high(0.05);
      break;
    case v1::Initializer::kConstant:
      if (!initializer->constant().has_value()) initializer->mutable_constant()->set_value(1);
      break;
    case v1::Initializer::kLecun:
      FillDistribution(initializer->mutable_lecun());
      break;
    case v1::Initializer::kTruncatedNormal: {
      v1::TruncatedNormalInitializer* normal = initializer->mutable_truncated_normal();
      if (!normal->has_standard_deviation()) normal->set_standard_deviation(0.01);
      const double reach = 2 * normal->standard_deviation();
      if (!normal->has_low()) normal->set_low(normal->mean() - reach);
      if (!normal->has_high()) normal->set_high(normal->mean() + reach);
      break;
    }
    case v1::Initializer::kOrthogonal:
      if (!initializer->orthogonal().has_gain()) initializer->mutable_orthogonal()->set_gain(1);
      break;
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
}

absl::Status CheckInitializer(const v1::Initializer& initializer) {
  v1::Initializer filled = initializer;
  FillInitializerDefaults(&filled);
  FieldViolations violations;
  switch (filled.kind_case()) {
    case v1::Initializer::kXavier:
      CheckDistribution("xavier", filled.xavier().distribution(), violations);
      break;
    case v1::Initializer::kHe:
      CheckDistribution("he", filled.he().distribution(), violations);
      break;
    case v1::Initializer::kNormal:
      CheckFinite("normal.mean", filled.normal().mean(), violations);
      CheckDeviation("normal.standard_deviation", filled.normal().standard_deviation(), 0, violations);
      break;
    case v1::Initializer::kUniform:
      CheckFinite("uniform.low", filled.uniform().low(), violations);
      CheckFinite("uniform.high", filled.uniform().high(), violations);
      if (filled.uniform().high() < filled.uniform().low()) {
        violations.Add("uniform.high", absl::StrCat("is ", filled.uniform().high(),
                                                    "; it must be at least low, ", filled.uniform().low()));
      }
      break;
    case v1::Initializer::kConstant:
      CheckFinite("constant.value", filled.constant().value(), violations);
      break;
    case v1::Initializer::kLecun:
      CheckDistribution("lecun", filled.lecun().distribution(), violations);
      break;
    case v1::Initializer::kTruncatedNormal:
      CheckTruncatedNormal(filled.truncated_normal(), violations);
      break;
    case v1::Initializer::kOrthogonal:
      CheckFinite("orthogonal.gain", filled.orthogonal().gain(), violations);
      break;
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
  return violations.ToStatus();
}

double OrthogonalProducts(const Shape& shape) {
  const int64_t rows = RowsOf(shape);
  const auto [count, length] = std::minmax({rows, shape.elements() / rows});
  // Two passes over all pairs of vectors, each with a dot product and a subtraction.
  return 2.0 * static_cast<double>(count) * static_cast<double>(count) * static_cast<double>(length);
}

Tensor Initialize(const v1::Initializer& initializer, const Shape& shape, Fans fans, uint64_t seed,
                  absl::string_view name) {
  Tensor tensor(DType::kFloat32, shape);
  const absl::Span<float> values = tensor.data<float>();
  const uint64_t hash = HashName(name);
  RandomStream random(seed, RandomPurpose::kInitializer, hash >> 32, hash & 0xFFFFFFFF);
  switch (initializer.kind_case()) {
    case v1::Initializer::kXavier:
      FillWithVariance(random, initializer.xavier().distribution(), 2 / (fans.in + fans.out), values);
      break;
    case v1::Initializer::kHe:
      FillWithVariance(random, initializer.he().distribution(), 2 / fans.in, values);
      break;
    case v1::Initializer::kNormal:
      FillNormal(random, initializer.normal().mean(), initializer.normal().standard_deviation(), values);
      break;
    case v1::Initializer::kUniform:
      FillUniform(random, initializer.uniform().low(), initializer.uniform().high(), values);
      break;
    case v1::Initializer::kConstant:
      for (float& value : values) value = static_cast<float>(initializer.constant().value());
      break;
    case v1::Initializer::kLecun:
      FillWithVariance(random, initializer.lecun().distribution(), 1 / fans.in, values);
      break;
    case v1::Initializer::kTruncatedNormal:
      FillTruncatedNormal(random, initializer.truncated_normal(), values);
      break;
    case v1::Initializer::kOrthogonal: {
      const int64_t rows = RowsOf(shape);
      FillOrthogonal(random, initializer.orthogonal().gain(), rows, shape.elements() / rows, values);
      break;
    }
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
  return tensor;
}

}  // namespace tandem
