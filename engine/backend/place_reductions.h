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

// Places steps that await reductions among an executable's steps, which are in running order. A step with
// `reduced.buffer` of at least 0 reduces this buffer. For each such step, `settle(step, which, is_used_next)`
// returns the step that awaits the reduction, or nothing if the reduction ends at once. `which` counts the
// awaited reductions so far. The awaiting step is placed before the first step that reads or writes the
// buffer, or at the end. It must name the buffer as a use too, so that a memory plan keeps the buffer until
// then. Returns the number of awaited reductions.
template <typename Step, typename Settle>
size_t PlaceReductions(std::vector<Step>& steps, const Settle& settle) {
  const auto uses = [](const Step& step, int buffer) {
    const auto is_it = [buffer](const auto& region) { return region.buffer == buffer; };
    return std::any_of(step.reads.begin(), step.reads.end(), is_it) ||
           std::any_of(step.writes.begin(), step.writes.end(), is_it);
  };
  size_t awaited = 0;
  std::map<size_t, std::vector<Step>> awaits;  // By the position of the following step.
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
