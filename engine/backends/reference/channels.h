#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_CHANNELS_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_CHANNELS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/tensor/shape.h"

namespace tandem::reference {

// The elements of a channel of [N, C, ...], one after the other.
class Channels {
 public:
  explicit Channels(const Shape& shape)
      : samples_(shape[0]), channels_(shape[1]), positions_(shape.elements() / (shape[0] * shape[1])) {}

  int64_t count() const { return channels_; }
  double elements() const { return static_cast<double>(samples_ * positions_); }

  // Calls visit(i) for each element of `channel`.
  template <typename Visit>
  void ForEach(int64_t channel, Visit visit) const {
    for (int64_t n = 0; n < samples_; ++n) {
      const int64_t first = (n * channels_ + channel) * positions_;
      for (int64_t p = 0; p < positions_; ++p) visit(first + p);
    }
  }

 private:
  int64_t samples_;
  int64_t channels_;
  int64_t positions_;
};

// The moments of a channel's elements.
struct ChannelMoments {
  double mean = 0;
  double squares = 0;  // The sum of squared differences from the mean.
};

inline ChannelMoments ChannelMomentsOf(const Channels& channels, int64_t channel,
                                       absl::Span<const double> x) {
  double sum = 0;
  channels.ForEach(channel, [&](int64_t i) { sum += x[i]; });
  ChannelMoments moments = {.mean = sum / channels.elements()};
  channels.ForEach(channel,
                   [&](int64_t i) { moments.squares += (x[i] - moments.mean) * (x[i] - moments.mean); });
  return moments;
}

// The gradients of a channel's weight and bias.
struct ChannelGrads {
  double weight = 0;
  double bias = 0;
};

inline ChannelGrads ChannelGradsOf(const Channels& channels, int64_t channel, absl::Span<const double> x,
                                   absl::Span<const double> grad_y, double mean, double inv_std) {
  ChannelGrads grads;
  channels.ForEach(channel, [&](int64_t i) {
    grads.bias += grad_y[i];
    grads.weight += grad_y[i] * (x[i] - mean) * inv_std;
  });
  return grads;
}

}  // namespace tandem::reference

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_CHANNELS_H_
