#include "server/sweeps/random_values.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/philox.h"
#include "proto/fields/field_value.h"

namespace tandem {
namespace {

// Integers up to this value are exact as doubles.
constexpr int64_t kMostExact = int64_t{1} << 53;

void CheckRange(const v1::SweepRange& range, const std::string& path, FieldViolations* violations) {
  if (!std::isfinite(range.min())) violations->Add(path + ".min", "must be finite");
  if (!std::isfinite(range.max())) violations->Add(path + ".max", "must be finite");
  if (std::isfinite(range.min()) && std::isfinite(range.max()) && !(range.min() < range.max())) {
    violations->Add(path + ".max",
                    absl::StrCat("is ", range.max(), "; it must be above min, which is ", range.min()));
  } else if (std::isfinite(range.min()) && std::isfinite(range.max()) &&
             !std::isfinite(range.max() - range.min())) {
    violations->Add(path, "is too wide: max - min must be finite");
  }
}

// Uniform in [min, max), even if rounding would reach max.
double Between(double min, double max, double uniform) {
  const double value = min + (max - min) * uniform;
  return std::clamp(value, min, std::nextafter(max, min));
}

// Uniform in [0, bound) without bias: draws above the largest multiple of bound are repeated.
uint64_t Below(uint64_t bound, RandomStream* random) {
  const uint64_t excess = (UINT64_MAX % bound + 1) % bound;
  while (true) {
    const uint64_t word = random->Next64();
    if (word <= UINT64_MAX - excess) return word % bound;
  }
}

}  // namespace

absl::Status CheckDistribution(const v1::SweepRandomField& field) {
  FieldViolations violations;
  switch (field.distribution_case()) {
    case v1::SweepRandomField::kUniform:
      CheckRange(field.uniform(), "uniform", &violations);
      break;
    case v1::SweepRandomField::kLogUniform:
      CheckRange(field.log_uniform(), "log_uniform", &violations);
      if (!(field.log_uniform().min() > 0)) {
        violations.Add("log_uniform.min",
                       absl::StrCat("is ", field.log_uniform().min(), "; it must be above 0"));
      }
      break;
    case v1::SweepRandomField::kInteger: {
      const v1::SweepIntegerRange& range = field.integer();
      for (const auto& [name, value] :
           {std::pair("integer.min", range.min()), {"integer.max", range.max()}}) {
        if (value < -kMostExact || value > kMostExact) {
          violations.Add(name, absl::StrCat("is ", value, "; it must be within ", kMostExact, " of 0"));
        }
      }
      if (range.min() > range.max()) {
        violations.Add("integer.max",
                       absl::StrCat("is ", range.max(), "; it must be at least min, which is ", range.min()));
      }
      break;
    }
    case v1::SweepRandomField::kChoice:
      if (field.choice().values().empty()) violations.Add("choice.values", "is required: one value, or more");
      for (int i = 0; i < field.choice().values_size(); ++i) {
        violations.AddAll(absl::StrCat("choice.values[", i, "]"),
                          ToJsonText(field.choice().values(i)).status());
      }
      break;
    case v1::SweepRandomField::DISTRIBUTION_NOT_SET:
      violations.Add("distribution", "is required: uniform, log_uniform, integer or choice");
      break;
  }
  return violations.ToStatus();
}

google::protobuf::Value DrawValue(const v1::SweepRandomField& field, uint64_t seed, int position,
                                  int sample) {
  RandomStream random(seed, RandomPurpose::kSweep, static_cast<uint64_t>(position),
                      static_cast<uint64_t>(sample));
  google::protobuf::Value value;
  switch (field.distribution_case()) {
    case v1::SweepRandomField::kUniform:
      value.set_number_value(Between(field.uniform().min(), field.uniform().max(), random.NextUniform()));
      break;
    case v1::SweepRandomField::kLogUniform: {
      const double min = field.log_uniform().min();
      const double max = field.log_uniform().max();
      const double drawn = std::exp(Between(std::log(min), std::log(max), random.NextUniform()));
      value.set_number_value(std::clamp(drawn, min, std::nextafter(max, min)));
      break;
    }
    case v1::SweepRandomField::kInteger: {
      const auto count = static_cast<uint64_t>(field.integer().max() - field.integer().min()) + 1;
      value.set_number_value(
          static_cast<double>(field.integer().min() + static_cast<int64_t>(Below(count, &random))));
      break;
    }
    case v1::SweepRandomField::kChoice:
      value = field.choice().values(
          static_cast<int>(Below(static_cast<uint64_t>(field.choice().values_size()), &random)));
      break;
    case v1::SweepRandomField::DISTRIBUTION_NOT_SET:
      break;
  }
  return value;
}

}  // namespace tandem
