#ifndef TANDEM_ENGINE_BASE_PHILOX_H_
#define TANDEM_ENGINE_BASE_PHILOX_H_

#include <array>
#include <cmath>
#include <cstdint>

namespace tandem {

// The counter-based generator Philox-4x32-10: four 32-bit random words from a 128-bit counter and a 64-bit
// key. Salmon, Moraes, Dror and Shaw 2011, "Parallel Random Numbers: As Easy as 1, 2, 3". A pure function.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The purpose of random numbers, so that no two uses share numbers. Never reuse or renumber a value: jobs
// would no longer be reproducible. Each comment gives the meaning of `step` and `sample` in RandomStream.
enum class RandomPurpose : uint8_t {
  kInitializer = 1,       // step and sample: the halves of the hash of the parameter's name
  kShuffle = 2,           // step: the epoch
  kSyntheticPattern = 3,  // sample: the class
  kSyntheticSample = 4,   // step: the split; sample: its index
  kValidationSplit = 16,  // no step, no sample
  kAugmentation = 17,     // step: the epoch; sample: its index in the training split
  kMixing = 18,           // step: the epoch; sample: its index in the training split
  kPartner = 19,          // step: the epoch; sample: the index of the sample that gets the partner
  kDropout = 20,          // step: the step; sample: its place in the batch
  kSweep = 21,            // step: the position of the field; sample: the number of the sample
  kBalance = 22,          // step: the epoch; sample: the place of the class among the classes with samples
};

// The random sequence of (seed, purpose, step, sample), the same on every machine at every time. `step` and
// `sample` must be below 2^40. A sequence has 2^42 words. Not thread-safe. Cheap to create.
class RandomStream {
 public:
  RandomStream(uint64_t seed, RandomPurpose purpose, uint64_t step, uint64_t sample)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        sample_(static_cast<uint32_t>(sample)),
        step_(static_cast<uint32_t>(step)),
        high_((static_cast<uint32_t>(purpose) << 24) | (static_cast<uint32_t>(step >> 32) & 0xFF) << 16 |
              (static_cast<uint32_t>(sample >> 32) & 0xFF) << 8) {}

  // Returns four uniform words.
  std::array<uint32_t, 4> NextBlock() {
    const uint64_t block = block_++;
    return Philox4x32(
        {static_cast<uint32_t>(block), sample_, step_, high_ | (static_cast<uint32_t>(block >> 32) & 0xFF)},
        key_);
  }

  uint32_t Next32() {
    if (used_ == 4) {
      words_ = NextBlock();
      used_ = 0;
    }
    return words_[used_++];
  }

  uint64_t Next64() {
    const uint64_t low = Next32();
    return low | uint64_t{Next32()} << 32;
  }

  // Returns a uniform number in [0, 1), in steps of 2^-53.
  double NextUniform() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }

  // Returns a standard normal number (Box and Muller 1958).
  double NextNormal() {
    if (has_normal_) {
      has_normal_ = false;
      return normal_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - NextUniform()));
    const double angle = 6.283185307179586476925 * NextUniform();
    normal_ = radius * std::sin(angle);
    has_normal_ = true;
    return radius * std::cos(angle);
  }

  // Returns a uniform number in [0, bound), without bias. `bound` is at least 1. Lemire 2019, "Fast Random
  // Integer Generation in an Interval".
  uint32_t NextBelow(uint32_t bound) {
    uint64_t product = uint64_t{Next32()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = -bound % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{Next32()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  const std::array<uint32_t, 2> key_;
  const uint32_t sample_;
  const uint32_t step_;
  const uint32_t high_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> words_ = {};
  int used_ = 4;
  double normal_ = 0;
  bool has_normal_ = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_PHILOX_H_
