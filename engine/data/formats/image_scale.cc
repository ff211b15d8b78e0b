#include "engine/data/formats/image_scale.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem {
namespace {

// So many bytes of 255 add up to at most 65,535.
constexpr int64_t kBytesInWord = 257;

// The old pixels of a line that make up a new pixel. Their weights add up to 1.
struct Taps {
  int64_t first = 0;
  int64_t count = 0;
  float first_weight = 0;
  float middle_weight = 0;  // Of each pixel between the first and the last.
  float last_weight = 0;    // If there are several pixels.
};

std::vector<Taps> TapsOf(const ScaledSide& side) {
  const int64_t size = side.size;
  std::vector<Taps> taps(side.count);
  const double ratio = static_cast<double>(size) / static_cast<double>(side.scaled);
  for (int64_t k = 0; k < side.count; ++k) {
    const int64_t i = side.first + k;
    Taps& one = taps[k];
    if (side.scaled >= size) {
      const double at = std::clamp((static_cast<double>(i) + 0.5) * ratio - 0.5, 0.0, size - 1.0);
      one.first = std::min(static_cast<int64_t>(at), std::max<int64_t>(0, size - 2));
      one.count = std::min<int64_t>(2, size);
      one.last_weight = one.count == 1 ? 0 : static_cast<float>(at - static_cast<double>(one.first));
      one.first_weight = 1 - one.last_weight;
      continue;
    }
    const double begin = static_cast<double>(i) * ratio, end = begin + ratio;
    one.first = static_cast<int64_t>(begin);
    const int64_t last = std::min(size, static_cast<int64_t>(std::ceil(end - 1e-9)));
    one.count = last - one.first;
    const auto weight = [&](int64_t old) {
      const double covered =
          std::min(end, static_cast<double>(old) + 1) - std::max(begin, static_cast<double>(old));
      return static_cast<float>(covered / ratio);
    };
    one.first_weight = weight(one.first);
    one.middle_weight = static_cast<float>(1 / ratio);
    one.last_weight = weight(last - 1);
  }
  return taps;
}

uint8_t ToByte(float number) { return static_cast<uint8_t>(std::clamp(number, 0.0F, 255.0F) + 0.5F); }

// Writes the new pixels of a row.
template <int kChannels, typename Number>
void ScaleRow(const Number* row, const std::vector<Taps>& taps, float* to) {
  for (const Taps& one : taps) {
    const Number* from = row + one.first * kChannels;
    const int64_t last = one.count - 1;
    float middle[kChannels] = {};
    for (int64_t k = 1; k < last; ++k) {
      for (int c = 0; c < kChannels; ++c) middle[c] += static_cast<float>(from[k * kChannels + c]);
    }
    for (int c = 0; c < kChannels; ++c) {
      float sum = one.first_weight * static_cast<float>(from[c]) + one.middle_weight * middle[c];
      if (last > 0) sum += one.last_weight * static_cast<float>(from[last * kChannels + c]);
      *to++ = sum;
    }
  }
}

void AddBytes(const uint8_t* __restrict from, int64_t count, uint16_t* __restrict words) {
  for (int64_t i = 0; i < count; ++i) words[i] = static_cast<uint16_t>(words[i] + from[i]);
}

// Moves the words to the sums.
void AddWords(uint16_t* __restrict words, int64_t count, float* __restrict sums) {
  for (int64_t i = 0; i < count; ++i) {
    sums[i] += static_cast<float>(words[i]);
    words[i] = 0;
  }
}

template <typename Number>
void AddWeighted(const Number* __restrict from, float weight, int64_t count, float* __restrict sums) {
  for (int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<float>(from[i]);
}

// Writes to `sums` the weighted sum of rows that are `stride` bytes apart. `words` is zero before and after.
void AddRows(const uint8_t* rows, int64_t stride, const Taps& taps, int64_t count, uint16_t* words,
             float* sums) {
  std::fill(sums, sums + count, 0.0F);
  const int64_t last = taps.count - 1;
  for (int64_t k = 1; k < last; ++k) {
    AddBytes(rows + k * stride, count, words);
    if (k % kBytesInWord == 0 || k + 1 == last) AddWords(words, count, sums);
  }
  if (last > 1) {
    for (int64_t i = 0; i < count; ++i) sums[i] *= taps.middle_weight;
  }
  AddWeighted(rows, taps.first_weight, count, sums);
  if (last > 0) AddWeighted(rows + last * stride, taps.last_weight, count, sums);
}

template <int kChannels>
void Scale(const uint8_t* pixels, const ScaledSide& vertical, const ScaledSide& horizontal, uint8_t* to) {
  const std::vector<Taps> across = TapsOf(horizontal);
  const std::vector<Taps> down = TapsOf(vertical);
  const int64_t row = horizontal.size * kChannels;
  const int64_t new_row = horizontal.count * kChannels;
  std::vector<float> line(new_row);
  if (vertical.count <= vertical.size) {
    // Sums of rows are faster than sums within a row. Only the columns that a new pixel needs are added.
    const int64_t begin = across.front().first * kChannels;
    const int64_t count = (across.back().first + across.back().count) * kChannels - begin;
    std::vector<uint16_t> words(count);
    std::vector<float> sums(row);
    for (int64_t y = 0; y < vertical.count; ++y) {
      AddRows(pixels + down[y].first * row + begin, row, down[y], count, words.data(), sums.data() + begin);
      ScaleRow<kChannels>(sums.data(), across, line.data());
      std::transform(line.begin(), line.end(), to + y * new_row, ToByte);
    }
    return;
  }
  std::vector<float> narrow(vertical.size * new_row);
  for (int64_t y = 0; y < vertical.size; ++y) {
    ScaleRow<kChannels>(pixels + y * row, across, narrow.data() + y * new_row);
  }
  for (int64_t y = 0; y < vertical.count; ++y) {
    const float* from = narrow.data() + down[y].first * new_row;
    std::fill(line.begin(), line.end(), 0.0F);
    AddWeighted(from, down[y].first_weight, new_row, line.data());
    if (down[y].count > 1) AddWeighted(from + new_row, down[y].last_weight, new_row, line.data());
    std::transform(line.begin(), line.end(), to + y * new_row, ToByte);
  }
}

}  // namespace

void ScalePixels(const uint8_t* pixels, int64_t channels, const ScaledSide& vertical,
                 const ScaledSide& horizontal, uint8_t* to) {
  if (channels == 1) {
    Scale<1>(pixels, vertical, horizontal, to);
  } else {
    Scale<3>(pixels, vertical, horizontal, to);
  }
}

}  // namespace tandem
