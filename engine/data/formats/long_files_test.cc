// Files that are longer than a piece that is read at once.

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/csv_reader.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

using Rows = std::vector<std::vector<std::string>>;

absl::StatusOr<Rows> ReadRows(CsvReader& reader) {
  Rows rows;
  std::vector<absl::string_view> fields;
  while (true) {
    const absl::StatusOr<bool> more = reader.Next(&fields);
    if (!more.ok()) return more.status();
    if (!*more) return rows;
    rows.emplace_back(fields.begin(), fields.end());
  }
}

CsvReader::Source From(const std::string& text) {
  return [left = absl::string_view(text)](char* data, int64_t size) mutable -> absl::StatusOr<int64_t> {
    const size_t count = std::min(left.size(), static_cast<size_t>(size));
    std::memcpy(data, left.data(), count);
    left.remove_prefix(count);
    return static_cast<int64_t>(count);
  };
}

// A piece may end anywhere: within a field, a doubled quote or a line end.
TEST(LongFilesTest, RowsAreTheSameByPieces) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t most) { return random() % most; };
    const std::vector<std::string> cells = {"",        "1",          "-2.5e3", "\"\"",     "\"a \"\"b\"\"\"",
                                            "\"x,y\"", "\"l1\nl2\"", "z",      "\"\r\n\"", "\"\"\"\""};
    Rows expected;
    std::string text = seed % 2 == 0 ? "\xEF\xBB\xBF" : "";
    while (text.size() < (1 << 20)) {
      std::vector<std::string>& row = expected.emplace_back();
      std::vector<std::string> written;
      // Some single rows are longer than a piece.
      const size_t fields = below(500) == 0 ? 200'000 : 1 + below(8);
      for (size_t i = 0; i < fields; ++i) {
        const std::string& cell = cells[below(cells.size())];
        // A row with a single empty cell would be a blank line.
        written.push_back(cell.empty() && fields == 1 ? "w" : cell);
        const bool quoted = absl::StartsWith(written.back(), "\"");
        row.push_back(quoted ? absl::StrReplaceAll(written.back().substr(1, written.back().size() - 2),
                                                   {{"\"\"", "\""}})
                             : written.back());
      }
      absl::StrAppend(&text, absl::StrJoin(written, ","), below(2) == 0 ? "\n" : "\r\n");
      if (below(10) == 0) text += below(2) == 0 ? "\n" : "\r\n";
    }
    CsvReader whole(text, ','), pieces(From(text), ',');
    const absl::StatusOr<Rows> at_once = ReadRows(whole), by_pieces = ReadRows(pieces);
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    ASSERT_TRUE(by_pieces.ok()) << by_pieces.status();
    EXPECT_TRUE(*at_once == expected) << seed;
    EXPECT_TRUE(*by_pieces == expected) << seed;
    EXPECT_EQ(pieces.row(), static_cast<int64_t>(expected.size()));
  }
}

TEST(LongFilesTest, ARowHasAnEnd) {
  const auto status = [](const std::string& text) {
    CsvReader reader(From(text), ',');
    return std::string(ReadRows(reader).status().message());
  };
  const std::string longest(CsvReader::kMaxRowBytes + 1, '1');
  EXPECT_THAT(status("a,b\n" + longest), HasSubstr("row 2 is longer than the 16777216 bytes"));
  EXPECT_THAT(status("a,b\n\"" + longest + longest), HasSubstr("row 2 is longer than the 16777216 bytes"));
  std::string wide = "a,b\n";
  for (size_t i = 0; i <= CsvReader::kMaxFields; ++i) wide += "1,";
  EXPECT_THAT(status(wide), HasSubstr("row 2 has more than the 1048576 fields"));
  // Blank lines are no rows.
  EXPECT_EQ(status("a,b\n" + std::string(2 * CsvReader::kMaxRowBytes, '\n') + "1,2"), "");
  CsvReader fails([](char*, int64_t) { return absl::DataLossError("gone"); }, ',');
  std::vector<absl::string_view> fields;
  EXPECT_EQ(fails.Next(&fields).status(), absl::DataLossError("gone"));
}

TEST(LongFilesTest, CharactersAcrossPieces) {
  const std::string folder = FreshFolder();
  for (int shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'a');
    while (text.size() < 600'000) text += "\xF0\x9F\x8C\xB7";
    v1::DatasetSpec spec;
    spec.mutable_text()->set_train(WriteFile(absl::StrCat(folder, "/", shift), text));
    spec.mutable_text()->set_sequence_length(1);
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->info.train_samples, static_cast<int64_t>(shift + (text.size() - shift) / 4 - 1));
    EXPECT_EQ(opened->info.classes, shift == 0 ? 1 : 2);
    WriteFile(spec.text().train(), text + "\xF0\x9F");
    ExpectViolation(spec, "text.train", absl::StrCat("byte 0xf0 at offset ", text.size()));
  }
}

TEST(LongFilesTest, ArraysAreTheSameByPieces) {
  const std::string folder = FreshFolder();
  constexpr int32_t kSamples = 150'000;
  std::string inputs, targets;
  for (int64_t i = 0; i < kSamples; ++i) {
    for (const int64_t token : {i % 7, i % 11}) inputs += Little(token, 8);
    targets += Little(i % 13, 2);
  }
  const std::string x = Npy("<i8", absl::StrCat("(", kSamples, ", 2)"), inputs);
  const std::string y = Npy("<u2", absl::StrCat("(", kSamples, ",)"), targets);
  v1::DatasetSpec plain, packed;
  plain.mutable_npy()->mutable_train_inputs()->set_path(WriteFile(folder + "/x.npy", x));
  plain.mutable_npy()->mutable_train_targets()->set_path(WriteFile(folder + "/y.npy", y));
  // The header's length is not a multiple of an element, so pieces end within elements.
  const std::string npz = WriteFile(folder + "/data.npz", Zip({{"x.npy", x}, {"y.npy", y}}, false));
  packed.mutable_npy()->mutable_train_inputs()->set_path(npz);
  packed.mutable_npy()->mutable_train_inputs()->set_member("x");
  packed.mutable_npy()->mutable_train_targets()->set_path(npz);
  packed.mutable_npy()->mutable_train_targets()->set_member("y");
  for (v1::DatasetSpec* spec : {&plain, &packed}) spec->mutable_npy()->set_inputs(v1::SAMPLE_KIND_TOKENS);
  for (const v1::DatasetSpec& spec : {plain, packed}) {
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->info.classes, 13);
    const std::vector<int32_t> samples = Samples<int32_t>(*opened->train);
    const std::vector<int32_t> labels = Targets<int32_t>(*opened->train);
    int wrong = 0;
    for (int32_t i = 0; i < kSamples; ++i) {
      wrong += samples[2 * i] != i % 7 || samples[2 * i + 1] != i % 11 || labels[i] != i % 13 ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0);
  }
}

// Returns a number of kilobytes from /proc/self/status.
int64_t Kilobytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, name)) continue;
    const size_t begin = line.find_first_of("0123456789");
    int64_t number = 0;
    if (absl::SimpleAtoi(line.substr(begin, line.find(' ', begin) - begin), &number)) return number;
  }
  return -1;
}

// Compresses the same content again and again, up to `bytes` bytes.
std::string WriteLong(const std::string& path, const std::string& begin, const std::string& content,
                      int64_t bytes) {
  gzFile file = ::gzopen(path.c_str(), "wb1");
  ::gzwrite(file, begin.data(), static_cast<unsigned>(begin.size()));
  std::string piece;
  while (piece.size() < (1 << 20)) piece += content;
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(piece.size())) {
    ::gzwrite(file, piece.data(), static_cast<unsigned>(piece.size()));
  }
  ::gzclose(file);
  return path;
}

// A daemon describes several files of any user at a time, and a small file may decompress to a huge content.
TEST(LongFilesTest, DescribingHoldsNoWhole) {
  constexpr int64_t kBytes = int64_t{64} << 20, kMost = int64_t{16} << 20;
  const std::string folder = FreshFolder();
  std::vector<v1::DatasetSpec> specs(5);
  specs[0].mutable_csv()->set_train(WriteLong(folder + "/values.csv.gz", "a,y\n", "1,2\n3,4.5\n", kBytes));
  specs[1].mutable_csv()->set_train(WriteLong(folder + "/classes.csv.gz", "a,y\n", "1,x\n", kBytes));
  specs[2].mutable_text()->set_train(WriteLong(folder + "/text.gz", "", "tulips ", kBytes));
  specs[2].mutable_text()->set_sequence_length(8);
  {
    const std::string tokens = Npy("<i8", absl::StrCat("(", kBytes / 16, ", 2)"), std::string(kBytes, '\0'));
    const std::string path = WriteFile(folder + "/tokens.npz", Zip({{"t.npy", tokens}}, false));
    specs[3].mutable_npy()->mutable_train_inputs()->set_path(path);
    specs[3].mutable_npy()->mutable_train_targets()->set_path(path);
  }
  const auto idx = [](int rank, const std::vector<int>& extents) {
    std::string header = {0, 0, 8, static_cast<char>(rank)};
    for (const int extent : extents) {
      for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<char>(extent >> shift));
    }
    return header;
  };
  specs[4].mutable_idx()->set_train_images(
      WriteLong(folder + "/images.gz", idx(3, {kBytes, 1, 1}), std::string(1, 1), kBytes));
  specs[4].mutable_idx()->set_train_labels(
      WriteLong(folder + "/labels.gz", idx(1, {kBytes}), std::string(1, 1), kBytes));
  for (const v1::DatasetSpec& spec : specs) {
    // From here on VmHWM is the largest memory.
    std::ofstream("/proc/self/clear_refs") << "5";
    const int64_t before = Kilobytes("VmRSS");
    ASSERT_GT(before, 0);
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec);
    EXPECT_TRUE(info.ok()) << info.status();
    EXPECT_LE(Kilobytes("VmHWM") - before, kMost >> 10) << spec.DebugString();
  }
}

}  // namespace
}  // namespace tandem
