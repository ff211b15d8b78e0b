#ifndef TANDEM_ENGINE_DATA_FORMATS_SCALE_KERNELS_H_
#define TANDEM_ENGINE_DATA_FORMATS_SCALE_KERNELS_H_

#include <cstdint>
#include <vector>

namespace tandem {

// The old pixels of a line that make up a new pixel. Their weights add up to 1.
struct Taps {
  int64_t first = 0;
  int64_t count = 1;
  float first_weight = 0;
  float middle_weight = 0;  // Of each pixel between the first and the last.
  float last_weight = 0;    // 0 if there is a single pixel.
};

// The loops of RowScaler, for an instruction set. All instruction sets give the same bits: a kernel rounds
// after each multiplication and each addition, and adds in the order that its comment gives.
struct ScaleKernels {
  // Adds `rows` rows of `count` bytes to `words`. The rows are `stride` bytes apart. The caller ensures that
  // no word overflows.
  void (*add_rows)(const uint8_t* from, int64_t stride, int64_t rows, int64_t count, uint16_t* words);

  // Writes (middle_weight * middle[i] + first_weight * first[i]) + last_weight * last[i]. Clears `middle`.
  void (*weight_rows)(const Taps& taps, const uint8_t* first, uint16_t* middle, const uint8_t* last,
                      int64_t count, float* to);

  // Writes (first_weight * first + middle_weight * middle) + last_weight * last for each new pixel of a row.
  // `middle` is the sum from left to right. `line` is [pixels, 1 or 3]; a float behind the last pixel can be
  // read. `count` is a multiple of 4. `to` is [channels, count].
  void (*scale_grey)(const float* line, const Taps* taps, int64_t count, float* to);
  void (*scale_colours)(const float* line, const Taps* taps, int64_t count, float* to);

  // Rounds to bytes. Numbers outside of 0 to 255 become 0 and 255.
  void (*to_bytes)(const float* from, int64_t count, uint8_t* to);
};

// Returns the kernels that this machine can run, the fastest first. At least one.
const std::vector<const ScaleKernels*>& AllScaleKernels();

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_SCALE_KERNELS_H_
