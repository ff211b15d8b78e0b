#include "tests/fuzz/input_files.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"
#include "engine/data/dataset.h"

namespace tandem {
namespace {

constexpr char kBetween[] = "\n--next file--\n";

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

std::string MakeFolder() {
  std::string folder =
      std::filesystem::is_directory("/dev/shm") ? "/dev/shm/fuzz_XXXXXX" : "/tmp/fuzz_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) Wrong("no folder for inputs");
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(InputFolder(), ignored);
  });
  return folder;
}

}  // namespace

const std::string& InputFolder() {
  static const std::string* const folder = new std::string(MakeFolder());
  return *folder;
}

std::string JoinFiles(absl::Span<const std::string> contents) { return absl::StrJoin(contents, kBetween); }

std::vector<absl::string_view> SplitFiles(absl::string_view input, size_t count) {
  std::vector<absl::string_view> files;
  while (files.size() + 1 < count) {
    const size_t at = input.find(kBetween);
    files.push_back(input.substr(0, at));
    input = at == absl::string_view::npos ? absl::string_view() : input.substr(at + sizeof(kBetween) - 1);
  }
  files.push_back(input);
  return files;
}

std::string WriteInput(const std::string& name, absl::string_view content) {
  const std::string path = InputFolder() + "/" + name;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) Wrong("cannot write " + path);
  return path;
}

void OpenAndRead(const v1::DatasetSpec& spec) {
  const absl::StatusOr<DatasetInfo> described = DescribeDataset(spec);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  if (!opened.ok()) {
    if (!absl::IsInvalidArgument(opened.status())) Wrong(opened.status().ToString());
    return;
  }
  // Describing decodes small shards, opening does not.
  if (!described.ok() && !spec.has_webdataset()) {
    Wrong("opened, but not described: " + described.status().ToString());
  }
  if (described.ok() && opened->train->size() != described->train_samples)
    Wrong("other samples than described");
  for (const Dataset* split : {opened->train.get(), opened->validation.get()}) {
    if (split == nullptr) continue;
    std::vector<uint32_t> indices(std::min<int64_t>(split->size(), 16));
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint32_t>(i);
    std::vector<uint8_t> samples(indices.size() * split->sample_bytes());
    std::vector<uint8_t> targets(indices.size() * split->target_bytes());
    // Samples in shards are decoded when they are gathered.
    const absl::Status gathered = split->Gather(indices, samples.data(), targets.data());
    if (!gathered.ok() && !(spec.has_webdataset() && absl::IsInvalidArgument(gathered))) {
      Wrong(gathered.ToString());
    }
  }
}

}  // namespace tandem
