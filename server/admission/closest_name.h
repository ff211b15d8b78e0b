#ifndef TANDEM_SERVER_ADMISSION_CLOSEST_NAME_H_
#define TANDEM_SERVER_ADMISSION_CLOSEST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// The candidate that `name` was probably meant to be: the fewest letters to insert, remove, replace or swap
// (Damerau 1964, adjacent swaps), at most a third of its length, case and '_' against '-' aside. Empty where
// none is so close.
std::string ClosestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_CLOSEST_NAME_H_
