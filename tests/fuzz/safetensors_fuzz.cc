// Safetensors files, checkpoints and their state. The first byte chooses the kind. The target corrects a
// checkpoint's digest before reading, so that it reaches the code behind this check.

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/sha256.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/training/training_state.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {
namespace {

constexpr char kDigestMark[] = "\"sha256\":\"";
constexpr size_t kDigestLength = 64;

std::string WithRightDigest(std::string file) {
  const size_t mark = file.find(kDigestMark);
  if (mark == std::string::npos) return file;
  const size_t begin = mark + sizeof(kDigestMark) - 1;
  if (file.size() - begin < kDigestLength) return file;
  file.replace(begin, kDigestLength, kDigestLength, '0');
  file.replace(begin, kDigestLength, Sha256Of(file).value());
  return file;
}

std::string Checkpoint(const std::string& state) {
  Tensor weight(DType::kFloat32, Shape({2, 2}));
  const std::string path = InputFolder() + "/seed.safetensors";
  if (!WriteCheckpoint(Env::Real(), path, state, {NamedTensor{"shared/dense_1.weight", weight}}).ok())
    std::abort();
  return Env::Real()->ReadFile(path).value();
}

}  // namespace

std::vector<std::string> Seeds() {
  TrainingState training;
  training.steps_per_epoch = 16;
  const std::string state = ToJson(training);
  const std::string checkpoint = Checkpoint(state);
  return {absl::StrCat("f", checkpoint), absl::StrCat("c", checkpoint), absl::StrCat("s", state)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;  // NOLINT: a target is the program.
  if (size == 0) return 0;
  const absl::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'c':
      (void)ReadCheckpoint(Env::Real(),
                           WriteInput("checkpoint.safetensors", WithRightDigest(std::string(input))));
      break;
    case 's':
      (void)TrainingStateFromJson(input);
      break;
    default: {
      const auto parsed = ParseSafetensors(input);
      const auto header = ReadSafetensorsHeader(WriteInput("file.safetensors", input));
      // Both know of the same tensors.
      if (parsed.ok() != header.ok()) __builtin_trap();
      if (parsed.ok() && parsed->tensors.size() != header->tensors.size()) __builtin_trap();
    }
  }
  return 0;
}
