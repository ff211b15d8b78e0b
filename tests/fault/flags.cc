#include "tests/fault/flags.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/programs.h"

namespace tandem::testing {
namespace {

bool ParseFlag(const std::string& argument, std::initializer_list<Flag> flags) {
  const std::vector<std::string> parts = absl::StrSplit(argument, '=');
  const auto flag = std::find_if(flags.begin(), flags.end(), [&](const Flag& candidate) {
    return parts[0] == absl::StrCat("--", candidate.name);
  });
  return flag != flags.end() && parts.size() == 2 && absl::SimpleAtoi(parts[1], flag->value);
}

}  // namespace

int RunTests(int argc, char** argv, std::initializer_list<Flag> flags) {
  // Reads GoogleTest's flags and removes them from the arguments.
  ::testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (ParseFlag(argv[i], flags)) continue;
    const auto append = [](std::string* text, const Flag& flag) {
      absl::StrAppend(text, "--", flag.name, "=N");
    };
    std::cerr << "what is " << argv[i] << "? There are " << absl::StrJoin(flags, ", ", append) << "\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}

int64_t Amount(int64_t flag, int64_t sample, int64_t whole) {
  return flag != 0 ? flag : RunsWhole() ? whole : sample;
}

}  // namespace tandem::testing
