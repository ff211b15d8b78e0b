#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_CHANNELS_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_CHANNELS_H_

#include <cstdint>

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

}  // namespace tandem::reference

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_CHANNELS_H_
