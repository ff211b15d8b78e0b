#ifndef TANDEM_ENGINE_DATA_AUGMENT_PIXEL_LOOPS_H_
#define TANDEM_ENGINE_DATA_AUGMENT_PIXEL_LOOPS_H_

#include <cstdint>

namespace tandem {

// The loops of random changes over many pixels. Each operation on floats is rounded, so an op on a device
// that repeats the operations has the same bits. Bytes are rounded to the nearest.

// The two pixels of a line between which a new pixel lies: (1 - part) first + part second.
struct Place {
  int32_t first = 0;
  int32_t second = 0;
  float part = 0;  // In [0, 1].
};

// Writes the pixels of `line` at `count` places.
void EnlargeRow(const uint8_t* line, const Place* places, int64_t count, float* to);
void EnlargeRow(const float* line, const Place* places, int64_t count, float* to);

// Writes (1 - part) upper + part lower.
void BlendRows(const float* upper, const float* lower, float part, int64_t count, uint8_t* to);
void BlendRows(const float* upper, const float* lower, float part, int64_t count, float* to);

// Changes each number x of `count` pixels to factor x + (1 - factor) grey. The pixel's grey is 0.299 red +
// 0.587 green + 0.114 blue. Bytes are limited to 0 to 255.
void Saturate(float factor, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue);
void Saturate(float factor, int64_t count, float* red, float* green, float* blue);

// Adds `shift` to the hue of `count` pixels. Hues are in sixths of the colour circle: red is 0, green 2, blue
// 4 (the hexcone of Smith 1978, "Color Gamut Transform Pairs"). `shift` is in [-3, 3].
void ShiftHues(float shift, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_PIXEL_LOOPS_H_
