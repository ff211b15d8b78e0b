#include "engine/data/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "absl/types/span.h"
#include "engine/tensor/tensor.h"

namespace tandem {
namespace {

// Calls visit(samples, targets, count) with all samples, some at a time.
template <typename Visit>
void ForAllSamples(const Dataset& dataset, const Visit& visit) {
  constexpr int64_t kBufferBytes = int64_t{1} << 20;
  const int64_t at_once = std::max<int64_t>(1, kBufferBytes / std::max<int64_t>(1, dataset.sample_bytes()));
  Tensor samples(DType::kUInt8, Shape({at_once * dataset.sample_bytes()}));
  Tensor targets(DType::kUInt8, Shape({at_once * dataset.target_bytes()}));
  std::vector<uint32_t> indices;
  for (int64_t begin = 0; begin < dataset.size(); begin += at_once) {
    indices.resize(std::min(at_once, dataset.size() - begin));
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(begin));
    dataset.Gather(indices, samples.raw_data(), targets.raw_data());
    visit(samples.raw_data(), targets.raw_data(), static_cast<int64_t>(indices.size()));
  }
}

// Counts how often each byte is in each channel: exact, and faster than sums.
ChannelStatistics OfBytes(const Dataset& dataset, int64_t channels, int64_t area) {
  std::vector<std::array<int64_t, 256>> counts(channels);
  ForAllSamples(dataset, [&](const void* samples, const void* /*targets*/, int64_t count) {
    const auto* bytes = static_cast<const uint8_t*>(samples);
    for (int64_t i = 0; i < count * channels; ++i, bytes += area) {
      std::array<int64_t, 256>& of_channel = counts[i % channels];
      for (int64_t k = 0; k < area; ++k) ++of_channel[bytes[k]];
    }
  });
  ChannelStatistics statistics;
  for (const std::array<int64_t, 256>& of_channel : counts) {
    double total = 0, sum = 0, squares = 0;
    for (int value = 0; value < 256; ++value) {
      total += static_cast<double>(of_channel[value]);
      sum += static_cast<double>(of_channel[value]) * value;
    }
    const double mean = sum / total;
    for (int value = 0; value < 256; ++value) {
      squares += static_cast<double>(of_channel[value]) * (value - mean) * (value - mean);
    }
    statistics.mean.push_back(mean);
    statistics.standard_deviation.push_back(std::sqrt(squares / total));
  }
  return statistics;
}

// In two passes, so that a large mean does not hide a small deviation.
ChannelStatistics OfFloats(const Dataset& dataset, int64_t channels, int64_t area) {
  const double total = static_cast<double>(dataset.size() * area);
  ChannelStatistics statistics{.mean = std::vector<double>(channels),
                               .standard_deviation = std::vector<double>(channels)};
  const auto add = [&](std::vector<double>& sums, const auto& term) {
    ForAllSamples(dataset, [&](const void* samples, const void* /*targets*/, int64_t count) {
      const auto* values = static_cast<const float*>(samples);
      for (int64_t i = 0; i < count * channels; ++i, values += area) {
        double sum = 0;
        for (int64_t k = 0; k < area; ++k) sum += term(values[k], i % channels);
        sums[i % channels] += sum;
      }
    });
    for (double& sum : sums) sum /= total;
  };
  add(statistics.mean, [](double value, int64_t /*channel*/) { return value; });
  add(statistics.standard_deviation, [&](double value, int64_t channel) {
    const double distance = value - statistics.mean[channel];
    return distance * distance;
  });
  for (double& deviation : statistics.standard_deviation) deviation = std::sqrt(deviation);
  return statistics;
}

}  // namespace

ChannelStatistics ComputeStatistics(const Dataset& dataset, const DatasetInfo& info) {
  if (info.sample_type == SampleType::kTokens || dataset.size() == 0) return {};
  const int64_t channels = info.shape.rank() >= 1 ? info.shape[0] : 1;
  const int64_t area = info.shape.elements() / channels;
  return info.sample_type == SampleType::kBytes ? OfBytes(dataset, channels, area)
                                                : OfFloats(dataset, channels, area);
}

std::vector<int64_t> CountClasses(const Dataset& dataset, const DatasetInfo& info) {
  if (info.target_type != TargetType::kClass) return {};
  std::vector<int64_t> counts(info.classes);
  ForAllSamples(dataset, [&](const void* /*samples*/, const void* targets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) ++counts[static_cast<const int32_t*>(targets)[i]];
  });
  return counts;
}

std::optional<Range> RangeOfTargets(const Dataset& dataset, const DatasetInfo& info) {
  if (info.target_type != TargetType::kValues || dataset.size() == 0) return std::nullopt;
  Range range{.least = std::numeric_limits<float>::infinity(),
              .largest = -std::numeric_limits<float>::infinity()};
  ForAllSamples(dataset, [&](const void* /*samples*/, const void* targets, int64_t count) {
    const absl::Span<const float> numbers(static_cast<const float*>(targets),
                                          count * info.target_shape.elements());
    const auto [least, largest] = std::minmax_element(numbers.begin(), numbers.end());
    range = {.least = std::min(range.least, *least), .largest = std::max(range.largest, *largest)};
  });
  return range;
}

}  // namespace tandem
