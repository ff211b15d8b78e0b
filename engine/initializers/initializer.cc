#include "engine/initializers/initializer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/philox.h"

namespace tandem {
namespace {

// FNV-1a (Fowler, Noll and Vo), 64 bits: a fixed function, as what it gives decides initial weights.
uint64_t HashName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
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

void CheckFinite(absl::string_view field, double value, FieldViolations& violations) {
  if (!std::isfinite(value)) violations.Add(field, absl::StrCat("is ", value, "; it must be finite"));
}

}  // namespace

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
    case v1::Initializer::kTruncatedNormal:
    case v1::Initializer::kOrthogonal:
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
    case v1::Initializer::kNormal: {
      CheckFinite("normal.mean", filled.normal().mean(), violations);
      const double deviation = filled.normal().standard_deviation();
      if (!(deviation >= 0) || !std::isfinite(deviation)) {
        violations.Add("normal.standard_deviation",
                       absl::StrCat("is ", deviation, "; it must be finite and at least 0"));
      }
      break;
    }
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
    case v1::Initializer::kTruncatedNormal:
    case v1::Initializer::kOrthogonal:
      violations.Add("",
                     "is of a kind that this version does not offer; give another, such as xavier or normal");
      break;
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
  return violations.ToStatus();
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
    case v1::Initializer::kTruncatedNormal:
    case v1::Initializer::kOrthogonal:
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
  return tensor;
}

}  // namespace tandem
