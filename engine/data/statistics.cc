#include "engine/data/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/tensor.h"

namespace tandem {

namespace {

// Pieces of samples or targets have at most so many bytes, or one element.
constexpr int64_t kBufferBytes = int64_t{1} << 20;

// Calls `use` with all indices of `dataset` in pieces of at most `at_once`.
absl::Status ForPieces(
    const Dataset& dataset, int64_t at_once,
    absl::FunctionRef<absl::Status(int64_t first, absl::Span<const uint32_t> indices)> use) {
  std::vector<uint32_t> indices;
  for (int64_t begin = 0; begin < dataset.size(); begin += at_once) {
    indices.resize(std::min(at_once, dataset.size() - begin));
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(begin));
    TANDEM_RETURN_IF_ERROR(use(begin, indices));
  }
  return absl::OkStatus();
}

// As ForAllSamples, for the targets alone.
absl::Status ForAllTargets(const Dataset& dataset,
                           absl::FunctionRef<void(int64_t first, int64_t count, const void* targets)> use) {
  constexpr int64_t kMostAtOnce = 4096;
  const int64_t at_once =
      std::clamp<int64_t>(kBufferBytes / std::max<int64_t>(1, dataset.target_bytes()), 1, kMostAtOnce);
  Tensor targets(DType::kUInt8, Shape({at_once * dataset.target_bytes()}));
  return ForPieces(dataset, at_once, [&](int64_t first, absl::Span<const uint32_t> indices) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(dataset.GatherTargets(indices, targets.raw_data()));
    use(first, static_cast<int64_t>(indices.size()), targets.raw_data());
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status ForAllSamples(
    const Dataset& dataset,
    absl::FunctionRef<void(int64_t first, int64_t count, const void* samples, const void* targets)> use) {
  const int64_t at_once = std::max<int64_t>(1, kBufferBytes / std::max<int64_t>(1, dataset.sample_bytes()));
  Tensor samples(DType::kUInt8, Shape({at_once * dataset.sample_bytes()}));
  Tensor targets(DType::kUInt8, Shape({at_once * dataset.target_bytes()}));
  return ForPieces(dataset, at_once, [&](int64_t first, absl::Span<const uint32_t> indices) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(dataset.Gather(indices, samples.raw_data(), targets.raw_data()));
    use(first, static_cast<int64_t>(indices.size()), samples.raw_data(), targets.raw_data());
    return absl::OkStatus();
  });
}

StatisticsSum::StatisticsSum(const DatasetInfo& info) : type_(info.sample_type), channels_(info.shape) {
  if (type_ == SampleType::kBytes) byte_sums_.resize(channels_.count);
  if (type_ == SampleType::kFloats) {
    means_.resize(channels_.count);
    squares_.resize(channels_.count);
  }
}

int StatisticsSum::passes() const {
  return type_ == SampleType::kTokens ? 0 : type_ == SampleType::kBytes ? 1 : 2;
}

void StatisticsSum::Add(const void* samples, int64_t count) {
  if (!is_second_pass_) samples_ += count;
  if (type_ == SampleType::kFloats) {
    AddFloats(static_cast<const float*>(samples), count);
  } else if (type_ == SampleType::kBytes) {
    const auto* bytes = static_cast<const uint8_t*>(samples);
    for (int64_t i = 0; i < count * channels_.outer * channels_.count; ++i, bytes += channels_.area) {
      ByteSum sum = byte_sums_[i % channels_.count];
      for (int64_t k = 0; k < channels_.area; ++k) {
        const int64_t byte = bytes[k];
        sum.bytes += byte;
        sum.squares += byte * byte;
      }
      byte_sums_[i % channels_.count] = sum;
    }
  }
}

void StatisticsSum::AddFloats(const float* values, int64_t count) {
  for (int64_t i = 0; i < count * channels_.outer * channels_.count; ++i, values += channels_.area) {
    const int64_t channel = i % channels_.count;
    double sum = 0;
    if (is_second_pass_) {
      for (int64_t k = 0; k < channels_.area; ++k) {
        const double distance = values[k] - means_[channel];
        sum += distance * distance;
      }
      squares_[channel] += sum;
    } else {
      for (int64_t k = 0; k < channels_.area; ++k) sum += values[k];
      means_[channel] += sum;
    }
  }
}

void StatisticsSum::EndPass() {
  if (type_ == SampleType::kFloats && !is_second_pass_) {
    for (double& mean : means_) mean /= static_cast<double>(samples_ * channels_.outer * channels_.area);
  }
  is_second_pass_ = true;
}

ChannelStatistics StatisticsSum::Finish() const {
  ChannelStatistics statistics;
  if (samples_ == 0) return statistics;
  if (type_ == SampleType::kFloats) {
    statistics.mean = means_;
    for (const double squares : squares_) {
      const auto numbers = static_cast<double>(samples_ * channels_.outer * channels_.area);
      statistics.standard_deviation.push_back(std::sqrt(squares / numbers));
    }
  }
  for (const ByteSum& sum : byte_sums_) {
    const absl::int128 numbers = samples_ * channels_.outer * channels_.area;
    // The squared distances from the mean, times the square of `numbers`. Exact, so equal bytes have 0.
    const absl::int128 distances = numbers * sum.squares - absl::int128(sum.bytes) * sum.bytes;
    statistics.mean.push_back(static_cast<double>(sum.bytes) / static_cast<double>(numbers));
    statistics.standard_deviation.push_back(std::sqrt(static_cast<double>(distances)) /
                                            static_cast<double>(numbers));
  }
  return statistics;
}

absl::StatusOr<ChannelStatistics> ComputeStatistics(const Dataset& dataset, const DatasetInfo& info) {
  if (info.sample_type == SampleType::kTokens || dataset.size() == 0) return ChannelStatistics();
  StatisticsSum sum(info);
  for (int pass = 0; pass < sum.passes(); ++pass) {
    TANDEM_RETURN_IF_ERROR(ForAllSamples(dataset, [&](int64_t /*first*/, int64_t count, const void* samples,
                                                      const void* /*targets*/) { sum.Add(samples, count); }));
    sum.EndPass();
  }
  return sum.Finish();
}

absl::StatusOr<std::vector<int64_t>> CountClasses(const Dataset& dataset, const DatasetInfo& info) {
  std::vector<int64_t> counts;
  if (info.target_type != TargetKind::kClass) return counts;
  counts.resize(info.classes);
  TANDEM_RETURN_IF_ERROR(ForAllTargets(dataset, [&](int64_t /*first*/, int64_t count, const void* targets) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t label = static_cast<const int32_t*>(targets)[i];
      if (label >= 0) ++counts[label];
    }
  }));
  return counts;
}

absl::StatusOr<std::vector<std::vector<uint32_t>>> SamplesOfClasses(const Dataset& dataset,
                                                                    const DatasetInfo& info,
                                                                    std::optional<int64_t> ignored) {
  std::vector<std::vector<uint32_t>> classes(info.classes);
  TANDEM_RETURN_IF_ERROR(ForAllTargets(dataset, [&](int64_t first, int64_t count, const void* targets) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t label = static_cast<const int32_t*>(targets)[i];
      if (label >= 0 && label != ignored) classes[label].push_back(static_cast<uint32_t>(first + i));
    }
  }));
  classes.erase(
      std::remove_if(classes.begin(), classes.end(), [](const auto& samples) { return samples.empty(); }),
      classes.end());
  return classes;
}

absl::StatusOr<std::optional<Range>> RangeOfTargets(const Dataset& dataset, const DatasetInfo& info) {
  if (info.target_type != TargetKind::kValues || dataset.size() == 0) return std::nullopt;
  Range range{.least = std::numeric_limits<float>::infinity(),
              .largest = -std::numeric_limits<float>::infinity()};
  TANDEM_RETURN_IF_ERROR(ForAllTargets(dataset, [&](int64_t /*first*/, int64_t count, const void* targets) {
    const absl::Span<const float> numbers(static_cast<const float*>(targets),
                                          count * info.target_shape.elements());
    const auto [least, largest] = std::minmax_element(numbers.begin(), numbers.end());
    range = {.least = std::min(range.least, *least), .largest = std::max(range.largest, *largest)};
  }));
  return range;
}

absl::StatusOr<TrainingCounts> CountTraining(const v1::DatasetSpec& spec, const DatasetInfo& info) {
  TrainingCounts counts;
  if (info.target_type == TargetKind::kClass) counts.classes.resize(info.classes);
  StatisticsSum sum(info);
  // Inputs of a prepared table say little of the table.
  const bool has_statistics = !info.preparation.has_value();
  for (int pass = 0; pass < std::max(1, has_statistics ? sum.passes() : 0); ++pass) {
    TANDEM_RETURN_IF_ERROR(StreamTraining(
        spec, [&](int64_t /*first*/, int64_t count, const void* samples, const int32_t* classes) {
          if (samples != nullptr && has_statistics) sum.Add(samples, count);
          for (int64_t i = 0; i < count && classes != nullptr && pass == 0; ++i) {
            // Files may change between two readings.
            if (classes[i] >= 0 && classes[i] < info.classes) ++counts.classes[classes[i]];
          }
        }));
    sum.EndPass();
  }
  if (has_statistics) counts.statistics = sum.Finish();
  return counts;
}

}  // namespace tandem
