// Safetensors files, checkpoints and their state. The first byte chooses the kind. The target corrects a
// checkpoint's digest before reading, so that it reaches the code behind this check.

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
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

// A file as other software writes: halves, and a type that cannot be read.
constexpr char kOtherHeader[] = R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                                R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]},)"
                                R"("c":{"dtype":"I16","shape":[],"data_offsets":[8,10]},)"
                                R"("__metadata__":{"format":"pt"}})";

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

std::string OtherFile() {
  const std::string header(kOtherHeader);
  std::string length;
  for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i)));
  return absl::StrCat(length, header, std::string(10, '\1'));
}

bool AreEqual(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0);
}

// Reads a file in the three ways. Aborts if they differ.
void ReadInAllWays(absl::string_view content) {
  const auto parsed = ParseSafetensors(content);
  const std::string path = WriteInput("file.safetensors", content);
  const auto header = ReadSafetensorsHeader(path);
  // Only a header may have tensors of other types.
  if (parsed.ok() != (header.ok() && header->other_tensors.empty())) std::abort();
  if (!header.ok()) return;
  if (parsed.ok() && parsed->tensors.size() != header->tensors.size()) std::abort();
  std::set<std::string> names;
  for (const auto& [name, entry] : header->tensors) names.insert(name);
  size_t read = 0;
  const auto again = ReadSafetensorsTensors(path, names, [&](const std::string& name, const Tensor& tensor) {
    ++read;
    const SafetensorsEntry& entry = header->tensors.at(name);
    if (tensor.dtype() != entry.dtype || tensor.shape() != entry.shape) std::abort();
    if (parsed.ok() && !AreEqual(tensor, *parsed->Find(name))) std::abort();
  });
  if (!again.ok() || read != names.size()) std::abort();
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
  return {absl::StrCat("f", checkpoint), absl::StrCat("f", OtherFile()), absl::StrCat("c", checkpoint),
          absl::StrCat("s", state)};
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
    default:
      ReadInAllWays(input);
  }
  return 0;
}
