// Beside libFuzzer's own main: TARGET --write-seeds=FOLDER writes the seeds there, and that is all.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr char kFlag[] = "--write-seeds=";
  for (int i = 1; i < *argc; ++i) {
    if (!absl::StartsWith((*argv)[i], kFlag)) continue;
    const std::string folder = (*argv)[i] + sizeof(kFlag) - 1;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : tandem::Seeds()) {
      std::ofstream(absl::StrCat(folder, "/seed-", number++), std::ios::binary) << seed;
    }
    std::exit(0);
  }
  return 0;
}
