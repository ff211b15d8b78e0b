#include "engine/data/normalization.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"

namespace tandem {

namespace {

// More entries than any data set has channels.
constexpr int64_t kMostNormalizedChannels = int64_t{1} << 20;

}  // namespace

Channels::Channels(const Shape& sample) {
  if (sample.rank() == 0) return;
  const bool last = sample.rank() == 2;
  count = sample[last ? 1 : 0];
  outer = last ? sample[0] : 1;
  area = last ? 1 : sample.elements() / count;
}

absl::StatusOr<ResolvedNormalization> ResolveNormalization(const v1::Normalization& normalization,
                                                           const Shape& sample, DType samples) {
  FieldViolations violations;
  const int64_t channels = Channels(sample).count;
  if (normalization.from_data() && channels > kMostNormalizedChannels) {
    violations.Add("from_data", absl::StrCat("is given, but samples of shape ", sample.ToString(),
                                             " have more than ", kMostNormalizedChannels,
                                             " channels; give mean and standard_deviation instead"));
  }
  const auto check_count = [&](absl::string_view field, int count) {
    if (normalization.from_data() && count > 0) {
      violations.Add(field, "is given, but from_data computes it; leave one of them out");
    }
    if (count <= 1 || count == channels) return;
    violations.Add(field, absl::StrCat("has ", count, " numbers, but samples of shape ", sample.ToString(),
                                       " have ", channels, " channels; give one number, or one a channel"));
  };
  check_count("mean", normalization.mean_size());
  check_count("standard_deviation", normalization.standard_deviation_size());
  const double scale = normalization.has_scale()  ? normalization.scale()
                       : samples == DType::kUInt8 ? 1.0 / 255
                                                  : 1.0;
  if (!std::isfinite(scale)) violations.Add("scale", absl::StrCat("is ", scale, "; it must be finite"));
  for (int i = 0; i < normalization.mean_size(); ++i) {
    if (std::isfinite(normalization.mean(i))) continue;
    violations.Add(absl::StrCat("mean[", i, "]"),
                   absl::StrCat("is ", normalization.mean(i), "; it must be finite"));
  }
  for (int i = 0; i < normalization.standard_deviation_size(); ++i) {
    const double deviation = normalization.standard_deviation(i);
    if (std::isfinite(deviation) && deviation > 0) continue;
    violations.Add(absl::StrCat("standard_deviation[", i, "]"),
                   absl::StrCat("is ", deviation, "; it must be above 0 and finite"));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());

  ResolvedNormalization resolved{.scale = scale,
                                 .mean = {normalization.mean().begin(), normalization.mean().end()},
                                 .standard_deviation = {normalization.standard_deviation().begin(),
                                                        normalization.standard_deviation().end()}};
  if (normalization.from_data()) {
    resolved.mean.assign(channels, 0);
    resolved.standard_deviation.assign(channels, 1);
  }
  if (resolved.mean.empty()) resolved.mean = {0};
  if (resolved.standard_deviation.empty()) resolved.standard_deviation = {1};
  return resolved;
}

}  // namespace tandem
