#include "engine/backends/cuda/step_order.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace tandem::cuda {

void StepOrder::SplitAt(const std::byte* place) {
  auto next = uses_.lower_bound(place);
  if (next == uses_.begin() || (next != uses_.end() && next->first == place)) return;
  Use& use = std::prev(next)->second;
  if (use.end <= place) return;
  Use rest = use;
  use.end = place;
  uses_.emplace_hint(next, place, std::move(rest));
}

StepOrder::Uses::iterator StepOrder::Fill(const MemoryRange& range) {
  SplitAt(range.begin);
  SplitAt(range.end);
  const std::byte* place = range.begin;
  auto next = uses_.lower_bound(place);
  while (place < range.end) {
    if (next == uses_.end() || next->first > place) {
      const std::byte* end = next == uses_.end() ? range.end : std::min(range.end, next->first);
      next = uses_.emplace_hint(next, place, Use{.end = end});
    }
    place = next->second.end;
    ++next;
  }
  return uses_.find(range.begin);
}

std::vector<int> StepOrder::Add(absl::Span<const MemoryRange> reads, absl::Span<const MemoryRange> writes) {
  const int step = static_cast<int>(before_.size());
  std::set<int, std::greater<>> found;
  for (const MemoryRange& range : reads) {
    if (range.begin >= range.end) continue;
    for (auto piece = Fill(range); piece != uses_.end() && piece->first < range.end; ++piece) {
      if (piece->second.writer >= 0) found.insert(piece->second.writer);
      piece->second.readers.push_back(step);
    }
  }
  for (const MemoryRange& range : writes) {
    if (range.begin >= range.end) continue;
    auto piece = Fill(range);
    while (piece != uses_.end() && piece->first < range.end) {
      if (piece->second.writer >= 0) found.insert(piece->second.writer);
      found.insert(piece->second.readers.begin(), piece->second.readers.end());
      piece = uses_.erase(piece);
    }
    uses_.emplace_hint(piece, range.begin, Use{.end = range.end, .writer = step});
  }
  found.erase(step);
  std::vector<uint64_t>& before = before_.emplace_back(step / 64 + 1, 0);
  std::vector<int> direct;
  // From the newest step backwards: a wait that a later step already implies is left out.
  for (const int earlier : found) {
    if ((before[earlier / 64] >> (earlier % 64) & 1) != 0) continue;
    direct.push_back(earlier);
    before[earlier / 64] |= uint64_t{1} << (earlier % 64);
    const std::vector<uint64_t>& others = before_[earlier];
    for (size_t i = 0; i < others.size(); ++i) before[i] |= others[i];
  }
  std::reverse(direct.begin(), direct.end());
  return direct;
}

}  // namespace tandem::cuda
