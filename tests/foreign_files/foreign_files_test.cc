// Reads files that other software wrote (make_arrays.py), and compares each number, or the refusal's words.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "engine/data/statistics.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kPython[] = "/usr/bin/python3";

std::string Content(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string AsText(const std::vector<uint8_t>& bytes) { return std::string(bytes.begin(), bytes.end()); }

void ExpectRefusal(const absl::Status& status, const std::vector<std::string>& wanted) {
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  ASSERT_EQ(violations.size(), 1) << status;
  EXPECT_EQ(violations[0].field, wanted[0]);
  for (size_t i = 1; i < wanted.size(); ++i) EXPECT_THAT(violations[0].description, HasSubstr(wanted[i]));
}

void CheckCase(const fs::path& folder) {
  v1::DatasetSpec spec;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(Content(folder / "spec.textproto"), &spec));
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  // Adding a set counts its samples.
  const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec);
  const absl::Status counted = info.ok() ? CountTraining(spec, *info).status() : info.status();
  if (fs::exists(folder / "refusal.txt")) {
    const std::vector<std::string> wanted = absl::StrSplit(Content(folder / "refusal.txt"), '\n');
    ExpectRefusal(opened.status(), wanted);
    ExpectRefusal(counted, wanted);
    return;
  }
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(counted.ok()) << counted;
  EXPECT_TRUE(AsText(Samples<uint8_t>(*opened->train)) == Content(folder / "samples.bin")) << "other samples";
  EXPECT_TRUE(AsText(Targets<uint8_t>(*opened->train)) == Content(folder / "targets.bin")) << "other targets";
}

TEST(ForeignFilesTest, ArraysOfNumPyAndPandas) {
  ASSERT_EQ(std::system(absl::StrCat(kPython, " -c 'import numpy, pandas'").c_str()), 0)
      << "cannot make the files: python3-numpy or python3-pandas is missing; run deploy/setup.sh --test";
  const std::string root = FreshFolder();
  ASSERT_EQ(std::system(absl::StrCat(kPython, " tests/foreign_files/make_arrays.py ", root).c_str()), 0);
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(root)) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  EXPECT_GT(cases.size(), 150);
  for (const fs::path& folder : cases) {
    SCOPED_TRACE(folder.filename().string());
    CheckCase(folder);
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace tandem
