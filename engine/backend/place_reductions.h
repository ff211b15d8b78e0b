#ifndef TANDEM_ENGINE_BACKEND_PLACE_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKEND_PLACE_REDUCTIONS_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tandem {

// Puts steps that await reductions among the steps of an executable, in the order in which they run. A step
// whose `reduced.buffer` is not negative reduces that buffer; `settle(step, which, is_used_next)`, called for
// each, `which` the number of awaited ones so far, says how, and returns the step that awaits it, or none
// where it is done at once. That one is put before the first of the steps that use the buffer (their `reads`
// and `writes` name it), or behind all. As it uses the buffer too, a memory plan leaves the buffer to the
// reduction until then. Returns how many are awaited.
template <typename Step, typename Settle>
size_t PlaceReductions(std::vector<Step>& steps, const Settle& settle) {
  const auto uses = [](const Step& step, int buffer) {
    const auto is_it = [buffer](const auto& region) { return region.buffer == buffer; };
    return std::any_of(step.reads.begin(), step.reads.end(), is_it) ||
           std::any_of(step.writes.begin(), step.writes.end(), is_it);
  };
  size_t awaited = 0;
  std::map<size_t, std::vector<Step>> awaits;  // By the step before which they stand.
  for (size_t i = 0; i < steps.size(); ++i) {
    const int buffer = steps[i].reduced.buffer;
    if (buffer < 0) continue;
    size_t user = i + 1;
    while (user < steps.size() && !uses(steps[user], buffer)) ++user;
    std::optional<Step> await = settle(steps[i], awaited, user == i + 1);
    if (!await.has_value()) continue;
    awaits[user].push_back(*std::move(await));
    ++awaited;
  }
  std::vector<Step> placed;
  for (size_t i = 0; i <= steps.size(); ++i) {
    if (const auto found = awaits.find(i); found != awaits.end()) {
      std::move(found->second.begin(), found->second.end(), std::back_inserter(placed));
    }
    if (i < steps.size()) placed.push_back(std::move(steps[i]));
  }
  steps = std::move(placed);
  return awaited;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_PLACE_REDUCTIONS_H_
