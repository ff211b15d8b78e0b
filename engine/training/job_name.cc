#include "engine/training/job_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

constexpr int kMaxJobNameLength = 48;

}  // namespace

std::string WhyNoJobName(absl::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  // The id begins with the name, is used on command lines and names folders: "-rf" and ".." must fail.
  const bool begins_well = name.empty() || absl::ascii_isalnum(name.front());
  if (plain && begins_well && name.size() <= kMaxJobNameLength) return "";
  return absl::StrCat(
      "may have letters, digits, '_', '-' and '.', begins with a letter or a digit, and has at most ",
      kMaxJobNameLength, " characters");
}

}  // namespace tandem
