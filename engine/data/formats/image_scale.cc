#include "engine/data/formats/image_scale.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

// So many bytes of 255 add up to at most 65,535.
constexpr int64_t kBytesInWord = 257;

// Moves the words to the sums.
void AddWords(std::vector<uint16_t>& words, std::vector<float>& sums) {
  for (size_t i = 0; i < words.size(); ++i) {
    sums[i] += static_cast<float>(words[i]);
    words[i] = 0;
  }
}

// Returns the taps of a side that is not scaled.
std::vector<Taps> SinglePixels(const ScaledSide& side) {
  std::vector<Taps> taps(side.count);
  for (int64_t k = 0; k < side.count; ++k) taps[k] = {.first = side.first + k, .count = 1, .first_weight = 1};
  return taps;
}

}  // namespace

std::vector<Taps> TapsOf(const ScaledSide& side) {
  const int64_t size = side.size;
  std::vector<Taps> taps(side.count);
  const double ratio = static_cast<double>(size) / static_cast<double>(side.scaled);
  int64_t used = 0;  // The old pixels before this pixel are not needed again.
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
    // In an image of millions of rows, two new pixels may overlap by a rounding error.
    one.first = std::max(used, static_cast<int64_t>(begin));
    const int64_t last = std::min(size, static_cast<int64_t>(std::ceil(end - 1e-9)));
    one.count = last - one.first;
    const auto weight = [&](int64_t old) {
      const double covered =
          std::min(end, static_cast<double>(old) + 1) - std::max(begin, static_cast<double>(old));
      return static_cast<float>(covered / ratio);
    };
    one.first_weight = weight(one.first);
    one.middle_weight = static_cast<float>(1 / ratio);
    one.last_weight = one.count == 1 ? 0 : weight(last - 1);
    used = last - 1;
  }
  return taps;
}

void RowScaler::FindTaps(const ScaledSide& vertical, const ScaledSide& horizontal) {
  // If memory ends below, the next image finds its taps anew.
  vertical_ = {};
  copies_ = vertical.size == vertical.scaled && horizontal.size == horizontal.scaled;
  // Sums of rows are faster than sums within a row.
  narrow_first_ = vertical.count > vertical.size;
  down_ = copies_ ? SinglePixels(vertical) : TapsOf(vertical);
  across_ = copies_ ? SinglePixels(horizontal) : TapsOf(horizontal);
  first_column_ = across_.front().first;
  columns_ = across_.back().first + across_.back().count - first_column_;
  for (Taps& taps : across_) taps.first -= first_column_;
  padded_width_ = (horizontal.count + 3) / 4 * 4;
  across_.resize(padded_width_);
  vertical_ = vertical;
  horizontal_ = horizontal;
}

void RowScaler::Begin(int64_t channels, const ScaledSide& vertical, const ScaledSide& horizontal,
                      const Planes& to) {
  if (vertical != vertical_ || horizontal != horizontal_) FindTaps(vertical, horizontal);
  channels_ = channels;
  to_ = to;
  next_old_ = 0;
  next_new_ = 0;
  summed_rows_ = 0;
  sums_.clear();
  const int64_t numbers = columns_ * channels;
  first_row_.resize(numbers);
  words_.assign(numbers, 0);
  line_.assign(numbers + 1, 0.0F);
  now_.resize(padded_width_ * channels);
  before_.resize(now_.size());
  mixed_.resize(now_.size());
}

void RowScaler::Add(const uint8_t* rows, int64_t count, int64_t stride) {
  while (count > 0 && next_new_ < static_cast<int64_t>(down_.size())) {
    const int64_t used = AddSome(rows, count, stride);
    next_old_ += used;
    count -= used;
    rows += used * stride;
  }
}

int64_t RowScaler::AddSome(const uint8_t* rows, int64_t count, int64_t stride) {
  const Taps& taps = down_[next_new_];
  const int64_t last = taps.first + taps.count - 1;
  if (next_old_ < taps.first) return std::min(count, taps.first - next_old_);
  if (copies_) {
    Copy(rows);
    return 1;
  }
  if (narrow_first_) {
    AddNarrow(rows);
    return 1;
  }
  if (next_old_ == last) {
    FinishSums(rows);
    // The next new row may need the same old row.
    const bool again = next_new_ < static_cast<int64_t>(down_.size()) && down_[next_new_].first <= next_old_;
    return again ? 0 : 1;
  }
  if (next_old_ == taps.first) {
    std::copy(rows, rows + first_row_.size(), first_row_.begin());
    return 1;
  }
  const int64_t some = std::min({count, last - next_old_, kBytesInWord - summed_rows_ % kBytesInWord});
  AddMiddle(rows, some, stride);
  return some;
}

void RowScaler::AddMiddle(const uint8_t* rows, int64_t count, int64_t stride) {
  kernels_->add_rows(rows, stride, count, static_cast<int64_t>(words_.size()), words_.data());
  summed_rows_ += count;
  if (summed_rows_ % kBytesInWord != 0) return;
  sums_.resize(words_.size());
  AddWords(words_, sums_);
}

void RowScaler::Copy(const uint8_t* row) {
  for (int64_t c = 0; c < channels_; ++c) {
    uint8_t* const to = to_.pixels + c * to_.plane_stride + next_new_ * to_.row_stride;
    for (int64_t x = 0; x < horizontal_.count; ++x) to[x] = row[x * channels_ + c];
  }
  ++next_new_;
}

void RowScaler::FinishSums(const uint8_t* last) {
  const Taps& taps = down_[next_new_];
  const uint8_t* const first = taps.count == 1 ? last : first_row_.data();
  const auto count = static_cast<int64_t>(words_.size());
  if (sums_.empty()) {
    kernels_->weight_rows(taps, first, words_.data(), last, count, line_.data());
  } else {
    AddWords(words_, sums_);
    for (int64_t i = 0; i < count; ++i) {
      const float sum = taps.middle_weight * sums_[i] + taps.first_weight * static_cast<float>(first[i]);
      line_[i] = sum + taps.last_weight * static_cast<float>(last[i]);
    }
    sums_.clear();
  }
  summed_rows_ = 0;
  Narrow(now_);
  Write(now_);
}

void RowScaler::AddNarrow(const uint8_t* row) {
  std::swap(before_, now_);
  std::copy(row, row + columns_ * channels_, line_.begin());
  Narrow(now_);
  while (next_new_ < static_cast<int64_t>(down_.size())) {
    const Taps& taps = down_[next_new_];
    if (taps.first + taps.count - 1 != next_old_) return;
    const std::vector<float>& first = taps.count == 1 ? now_ : before_;
    for (size_t i = 0; i < now_.size(); ++i) {
      mixed_[i] = taps.first_weight * first[i] + taps.last_weight * now_[i];
    }
    Write(mixed_);
  }
}

void RowScaler::Narrow(std::vector<float>& to) const {
  const auto scale = channels_ == 1 ? kernels_->scale_grey : kernels_->scale_colours;
  scale(line_.data(), across_.data(), padded_width_, to.data());
}

void RowScaler::Write(const std::vector<float>& planes) {
  for (int64_t c = 0; c < channels_; ++c) {
    kernels_->to_bytes(planes.data() + c * padded_width_, horizontal_.count,
                       to_.pixels + c * to_.plane_stride + next_new_ * to_.row_stride);
  }
  ++next_new_;
}

}  // namespace tandem
