#ifndef TANDEM_SERVER_ADMISSION_CLOSEST_NAME_H_
#define TANDEM_SERVER_ADMISSION_CLOSEST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns the candidate that `name` probably means. Distance counts inserted, removed, replaced and swapped
// letters (Damerau 1964, adjacent swaps), and ignores case and '_' against '-'. Empty if every candidate is
// further away than a third of the length of `name`.
std::string ClosestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_CLOSEST_NAME_H_
