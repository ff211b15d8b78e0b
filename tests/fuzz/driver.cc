// Runs a fuzz target without libFuzzer: first every seed and every file of its corpus, then a number of
// inputs with random changes. Each run makes the same inputs.
//
//   TARGET [--runs=N] [--seed=S] [FILE OR FOLDER OR PACKED FOLDER]...
//
// A packed folder is named *.tar.gz.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem {
namespace {

constexpr size_t kMostBytes = 1 << 16;

std::string ReadWhole(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

void ReadFolder(const std::filesystem::path& folder, std::vector<std::string>* inputs) {
  // Sorts the files by name, so that each run makes the same inputs.
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) inputs->push_back(ReadWhole(file));
}

bool ReadPacked(const std::string& archive, std::vector<std::string>* inputs) {
  std::string folder = std::filesystem::temp_directory_path() / "corpus-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return false;
  const bool unpacked = std::system(absl::StrCat("tar -xzf '", archive, "' -C '", folder, "'").c_str()) == 0;
  if (unpacked) ReadFolder(folder, inputs);
  std::filesystem::remove_all(folder);
  return unpacked;
}

class Mutator {
 public:
  Mutator(uint64_t seed, const std::vector<std::string>* inputs) : random_(seed), inputs_(inputs) {}

  std::string Next() {
    std::string input = (*inputs_)[Below(inputs_->size())];
    for (size_t changes = 1 + Below(8); changes > 0; --changes) Change(&input);
    if (input.size() > kMostBytes) input.resize(kMostBytes);
    return input;
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  // Half of the changes are near the begin, where headers are.
  size_t Place(const std::string& input) {
    return Below(2) == 0 ? Below(std::min<size_t>(input.size(), 64)) : Below(input.size());
  }

  void Change(std::string* input) {
    if (input->empty()) input->push_back(static_cast<char>(Below(256)));
    const size_t at = Place(*input);
    switch (Below(7)) {
      case 0:
        (*input)[at] = static_cast<char>((*input)[at] ^ (1 << Below(8)));
        return;
      case 1:
        (*input)[at] = static_cast<char>(Below(256));
        return;
      case 2:
        input->erase(at, 1 + Below(16));
        return;
      case 3:
        input->insert(at, 1 + Below(16), static_cast<char>(Below(256)));
        return;
      case 4:  // A number that is as large, or as small, as can be.
        for (size_t i = at; i < std::min(input->size(), at + 8); ++i)
          (*input)[i] = Below(2) == 0 ? '\xFF' : '\0';
        return;
      case 5: {  // A piece of itself in another place.
        const std::string piece = input->substr(Place(*input), 1 + Below(64));
        input->insert(at, piece);
        return;
      }
      case 6: {  // A piece of another input.
        const std::string& other = (*inputs_)[Below(inputs_->size())];
        input->replace(at, Below(64), other.substr(Below(other.size()), 1 + Below(64)));
        return;
      }
    }
  }

  std::mt19937_64 random_;
  const std::vector<std::string>* const inputs_;
};

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

int Main(const std::vector<std::string>& arguments) {
  int64_t runs = 0;
  int64_t seed = 1;
  std::vector<std::string> inputs = Seeds();
  for (const std::string& argument : arguments) {
    if (absl::StartsWith(argument, "--")) {
      const bool known =
          (absl::StartsWith(argument, "--runs=") && absl::SimpleAtoi(argument.substr(7), &runs) &&
           runs >= 0) ||
          (absl::StartsWith(argument, "--seed=") && absl::SimpleAtoi(argument.substr(7), &seed));
      if (!known) {
        std::fprintf(stderr, "unknown argument '%s'; want [--runs=N] [--seed=S] [FILE OR FOLDER]...\n",
                     argument.c_str());
        return 2;
      }
    } else if (std::filesystem::is_directory(argument)) {
      ReadFolder(argument, &inputs);
    } else if (absl::EndsWith(argument, ".tar.gz")) {
      if (!ReadPacked(argument, &inputs)) {
        std::fprintf(stderr, "cannot unpack %s\n", argument.c_str());
        return 2;
      }
    } else {
      inputs.push_back(ReadWhole(argument));
    }
  }
  for (const std::string& input : inputs) Run(input);
  Mutator mutator(static_cast<uint64_t>(seed), &inputs);
  const char* const last = std::getenv("FUZZ_LAST_INPUT");  // A file that has the input that is being run.
  for (int64_t run = 0; run < runs; ++run) {
    const std::string input = mutator.Next();
    if (last != nullptr) std::ofstream(last, std::ios::binary | std::ios::trunc) << input;
    Run(input);
  }
  std::printf("%zu inputs as they are, %lld changed ones\n", inputs.size(), static_cast<long long>(runs));
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(std::vector<std::string>(argv + 1, argv + argc)); }
