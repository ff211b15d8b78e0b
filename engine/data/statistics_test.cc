#include "engine/data/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns bytes that are not all equal.
std::string Noise(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 7;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

std::string Floats(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i % 97) - 30.5f;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::string Labels(int count, int classes) {
  std::string labels;
  for (int i = 0; i < count; ++i) labels.push_back(static_cast<char>(i * i % classes));
  return labels;
}

std::string Big(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

// Returns a grey image of 3 x 2 pixels.
std::string GreyPng(const std::string& pixels) {
  std::string rows;
  for (int y = 0; y < 2; ++y) rows += std::string(1, '\0') + pixels.substr(y * 3, 3);
  std::string packed(1000, '\0');
  uLongf size = packed.size();
  EXPECT_EQ(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                       reinterpret_cast<const Bytef*>(rows.data()), rows.size()),
            Z_OK);
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", Big(3) + Big(2) + std::string("\x08\0\0\0\0", 5)) +
         PngChunk("IDAT", packed) + PngChunk("IEND", "");
}

v1::DatasetSpec Parse(const std::string& text) { return FromText<v1::DatasetSpec>(text); }

// Checks that counting during reading equals counting in memory.
void ExpectSame(const v1::DatasetSpec& source) {
  std::vector<std::string> choices = {"", "validation_split { fraction: 0.3 seed: 5 }", "train_limit: 7",
                                      "validation_split { fraction: 0.3 seed: 5 } train_limit: 7"};
  if (DescribeDataset(source)->target_type == TargetKind::kClass) {
    choices.emplace_back("validation_split { fraction: 0.3 seed: 5 stratified: true }");
    choices.emplace_back("validation_split { fraction: 0.3 seed: 5 stratified: true } train_limit: 7");
  }
  for (const std::string& more : choices) {
    v1::DatasetSpec spec = source;
    spec.MergeFrom(Parse(more));
    SCOPED_TRACE(spec.ShortDebugString());
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const ChannelStatistics statistics = *ComputeStatistics(*opened->train, opened->info);
    const absl::StatusOr<TrainingCounts> counts = CountTraining(spec, opened->info);
    ASSERT_TRUE(counts.ok()) << counts.status();
    // Equal to the bit, because the order of addition is equal.
    EXPECT_EQ(counts->statistics.mean, statistics.mean);
    EXPECT_EQ(counts->statistics.standard_deviation, statistics.standard_deviation);
    EXPECT_EQ(counts->classes, *CountClasses(*opened->train, opened->info));
  }
}

class StatisticsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    return WriteFile(absl::StrCat(folder_, "/", name), content);
  }

  const std::string folder_ = FreshFolder();
};

TEST_F(StatisticsTest, OfKnownNumbers) {
  const std::string bytes = {2, 4, 4, 6, 0, 0, 0, 0};
  const v1::DatasetSpec spec = Parse(absl::StrCat(
      "npy { train_inputs { path: '", Write("x.npy", Npy("|u1", "(2, 2, 2)", bytes)),
      "' } train_targets { path: '", Write("y.npy", Npy("|u1", "(2,)", std::string("\0\1", 2))), "' } }"));
  const absl::StatusOr<TrainingCounts> counts = CountTraining(spec, *DescribeDataset(spec));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->statistics.mean, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(counts->classes, (std::vector<int64_t>{1, 1}));
}

// Each channel has its own pixels: one is constant, one has two values, one is noise.
TEST_F(StatisticsTest, OfBytes) {
  constexpr int kSamples = 500, kArea = 77;
  const std::string noise = Noise(static_cast<size_t>(kSamples) * kArea);
  std::string elements;
  double sum = 0, squares = 0;
  for (int i = 0; i < kSamples; ++i) {
    elements += std::string(kArea, '\xFF') + std::string(kArea, i % 2 == 0 ? '\xFE' : '\xFF');
    elements += noise.substr(i * kArea, kArea);
  }
  for (const char byte : noise) sum += static_cast<uint8_t>(byte);
  const double mean = sum / static_cast<double>(noise.size());
  for (const char byte : noise) squares += std::pow(static_cast<uint8_t>(byte) - mean, 2);
  const v1::DatasetSpec spec = Parse(absl::StrCat(
      "npy { train_inputs { path: '",
      Write("x.npy", Npy("|u1", absl::StrCat("(", kSamples, ", 3, 7, 11)"), elements)),
      "' } train_targets { path: '",
      Write("y.npy", Npy("|i1", absl::StrCat("(", kSamples, ",)"), Labels(kSamples, 2))), "' } }"));
  const absl::StatusOr<TrainingCounts> counts = CountTraining(spec, *DescribeDataset(spec));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(counts->statistics.mean, ElementsAre(255, 254.5, DoubleNear(mean, 1e-9)));
  EXPECT_THAT(counts->statistics.standard_deviation,
              ElementsAre(0, 0.5, DoubleNear(std::sqrt(squares / static_cast<double>(noise.size())), 1e-9)));
}

// A constant channel of floats has no deviation, although 0.1 is not exact.
TEST_F(StatisticsTest, OfConstantFloats) {
  std::string elements;
  for (int i = 0; i < 3000; ++i) {
    const float value = 0.1F;
    elements.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(Parse(
      absl::StrCat("npy { train_inputs { path: '", Write("x.npy", Npy("<f4", "(1000, 3)", elements)),
                   "' } train_targets { path: '", Write("y.npy", Npy("|i1", "(1000,)", Labels(1000, 2))),
                   "' } } normalization { from_data: true }")));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->info.normalization.mean, ElementsAre(0.1F, 0.1F, 0.1F));
  EXPECT_THAT(opened->info.normalization.standard_deviation, ElementsAre(1, 1, 1));
}

// A data set whose targets are large, and that counts how many are asked for at once.
class LargeTargets final : public Dataset {
 public:
  static constexpr int64_t kNumbers = int64_t{1} << 17;
  int64_t size() const override { return 20; }
  int64_t sample_bytes() const override { return 1; }
  int64_t target_bytes() const override { return kNumbers * static_cast<int64_t>(sizeof(float)); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* /*samples*/, void* targets) const override {
    most_ = std::max(most_, indices.size());
    auto* number = static_cast<float*>(targets);
    for (const uint32_t index : indices) number = std::fill_n(number, kNumbers, static_cast<float>(index));
    return absl::OkStatus();
  }
  size_t most() const { return most_; }

 private:
  mutable size_t most_ = 0;
};

TEST_F(StatisticsTest, LargeTargetsAreReadInSmallPieces) {
  const LargeTargets dataset;
  DatasetInfo info;
  info.target_type = TargetKind::kValues;
  info.target_shape = Shape({LargeTargets::kNumbers});
  const absl::StatusOr<std::optional<Range>> range = RangeOfTargets(dataset, info);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ((*range)->least, 0);
  EXPECT_EQ((*range)->largest, 19);
  EXPECT_EQ(dataset.most(), 2u) << "pieces of 1 MiB";
}

TEST_F(StatisticsTest, OfIdxFiles) {
  // Samples end within pieces.
  const int samples = 4000, area = 19 * 31;
  const std::string images = Write("images", Gzipped(std::string("\0\0\x08\x03", 4) + Big(samples) + Big(19) +
                                                     Big(31) + Noise(static_cast<size_t>(samples) * area)));
  const std::string labels =
      Write("labels", std::string("\0\0\x08\x01", 4) + Big(samples) + Labels(samples, 5));
  ExpectSame(Parse(absl::StrCat("idx { train_images: '", images, "' train_labels: '", labels, "' }")));
}

TEST_F(StatisticsTest, OfArrays) {
  const int samples = 1500, features = 401;
  const std::string targets =
      Write("y.npy", Npy("|i1", absl::StrCat("(", samples, ",)"), Labels(samples, 3)));
  const auto expect = [&](const std::string& descr, const std::string& elements, const std::string& target) {
    const std::string inputs =
        Write("x.npy", Npy(descr, absl::StrCat("(", samples, ", ", features, ")"), elements));
    ExpectSame(Parse(absl::StrCat("npy { train_inputs { path: '", inputs, "' } train_targets { path: '",
                                  target, "' } }")));
  };
  const size_t elements = static_cast<size_t>(samples) * features;
  expect("|u1", Noise(elements), targets);
  expect("<f4", Floats(elements), targets);
  expect("<f4", Floats(elements),
         Write("v.npy", Npy("<f4", absl::StrCat("(", samples, ", 2)"), Floats(2 * samples))));
  // Tokens with a class for each sample.
  std::string tokens;
  for (size_t i = 0; i < elements; ++i) tokens += Little(i % 50, 2);
  expect("<i2", tokens, targets);
}

// Two samples of two positions with features a and b.
TEST_F(StatisticsTest, EachFeatureOfASequenceIsAChannel) {
  std::string elements;
  for (const float number : {1.0f, 100.0f, 3.0f, 300.0f, 5.0f, 500.0f, 7.0f, 700.0f}) {
    elements.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  const std::string inputs = Write("s.npy", Npy("<f4", "(2, 2, 2)", elements));
  const std::string targets = Write("t.npy", Npy("|i1", "(2,)", Labels(2, 2)));
  const auto opened =
      OpenDataset(Parse(absl::StrCat("npy { train_inputs { path: '", inputs, "' } train_targets { path: '",
                                     targets, "' } } normalization { from_data: true }")));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->info.normalization.mean, ElementsAre(4, 400));
  EXPECT_THAT(opened->info.normalization.standard_deviation,
              ElementsAre(DoubleNear(std::sqrt(5), 1e-9), DoubleNear(100 * std::sqrt(5), 1e-6)));
}

TEST_F(StatisticsTest, TellsOfNumbersThatFloatsRound) {
  const auto notices = [&](const std::string& times) {
    const std::string table = Write("times.csv", absl::StrCat("a,time,y\n", times));
    const auto opened =
        OpenDataset(Parse(absl::StrCat("csv { train: '", table, "' } normalization { from_data: true }")));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? opened->info.notices : std::vector<std::string>();
  };
  EXPECT_THAT(notices("1,1700000000,1\n2,1700000200,2\n3,1700000400,3\n"),
              Contains(HasSubstr("The column 'time' has numbers near 1.7e+09 with a deviation of ")));
  EXPECT_THAT(notices("1,1700000000,1\n2,1700000020,2\n3,1700000040,3\n"),
              Contains(HasSubstr("The column 'time' has numbers near 1.7e+09 with a deviation of 0.")));
  EXPECT_THAT(notices("1,17000,1\n2,17002,2\n3,17004,3\n"), Not(Contains(HasSubstr("round"))));
  EXPECT_THAT(notices("1,7,1\n2,7,2\n3,7,3\n"), Not(Contains(HasSubstr("round"))));
}

TEST_F(StatisticsTest, OfTablesImagesTextAndMadeUpSamples) {
  std::string table = "a,b,kind\n";
  for (int i = 0; i < 300; ++i)
    absl::StrAppend(&table, i, ",", i % 7, ".25,", i % 3 == 0 ? "cat" : "dog", "\n");
  const std::string csv = Write("table.csv", table);
  ExpectSame(Parse(absl::StrCat("csv { train: '", csv, "' }")));
  ExpectSame(Parse(absl::StrCat("csv { train: '", csv, "' target_columns: 'b' feature_columns: 'a' }")));

  for (const char* const name : {"cat", "dog"}) {
    std::filesystem::create_directories(absl::StrCat(folder_, "/images/", name));
    for (int i = 0; i < 9; ++i) {
      Write(absl::StrCat("images/", name, "/", i, ".png"), GreyPng(Noise(6 + i).substr(i)));
    }
  }
  ExpectSame(Parse(absl::StrCat("image_folder { train: '", folder_, "/images' }")));
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 18; ++i) {
    members.emplace_back(absl::StrCat(i, ".cls"), absl::StrCat(i % 3));
    members.emplace_back(absl::StrCat(i, ".png"), GreyPng(Noise(6 + i).substr(i)));
  }
  ExpectSame(
      Parse(absl::StrCat("webdataset { train: '", Write("shard.tar", Tar(members)), "' classes: 3 }")));

  const std::string text = Write("text", Noise(400));
  ExpectSame(
      Parse(absl::StrCat("text { train: '", text, "' tokens: TEXT_TOKENS_BYTES sequence_length: 8 }")));

  ExpectSame(Parse("synthetic { shape: [2, 3, 1] classes: 4 train_samples: 50 }"));
  ExpectSame(Parse("synthetic { shape: [6] values: 2 train_samples: 50 }"));
  ExpectSame(Parse("synthetic { shape: [6] vocabulary: 9 train_samples: 50 }"));
}

TEST_F(StatisticsTest, OfRecords) {
  std::string records;
  for (int i = 0; i < 20; ++i)
    records += std::string(1, static_cast<char>(i % 10)) + Noise(3072 + i).substr(i);
  const std::string first = Write("1.bin", records);
  const std::string second = Write("2.bin", Gzipped(records.substr(0, 7 * 3073)));
  ExpectSame(Parse(absl::StrCat("cifar { train: '", first, "' train: '", second, "' }")));
}

// The memory does not grow with the number of samples.
TEST_F(StatisticsTest, SamplesComeInSmallPieces) {
  const int samples = 16384, features = 1024;
  const std::string inputs =
      Write("x.npz", Zip({{"x.npy", Npy("|u1", absl::StrCat("(", samples, ", ", features, ")"),
                                        std::string(static_cast<size_t>(samples) * features, '\1'))}},
                         /*large=*/false));
  const std::string targets =
      Write("y.npy", Npy("|i1", absl::StrCat("(", samples, ",)"), Labels(samples, 2)));
  int64_t all = 0, largest = 0;
  const absl::Status status =
      StreamTraining(Parse(absl::StrCat("npy { train_inputs { path: '", inputs, "' } train_targets { path: '",
                                        targets, "' } }")),
                     [&](int64_t first, int64_t count, const void* /*samples*/, const int32_t* /*classes*/) {
                       EXPECT_EQ(first, all);
                       all += count;
                       largest = std::max(largest, count * features);
                     });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(all, samples);
  EXPECT_LE(largest, 2 << 20);
}

// Faults that appear only during reading name their fields, as if samples were kept.
TEST_F(StatisticsTest, ErrorsNameTheirFields) {
  const std::string nan("\0\0\xc0\x7f", 4);
  const v1::DatasetSpec spec = Parse(absl::StrCat(
      "npy { train_inputs { path: '", Write("x.npy", Npy("<f4", "(2, 1)", nan + nan)),
      "' } train_targets { path: '", Write("y.npy", Npy("|u1", "(2,)", std::string("\0\1", 2))), "' } }"));
  const absl::Status status = CountTraining(spec, *DescribeDataset(spec)).status();
  ASSERT_EQ(GetFieldViolations(status).size(), 1) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "npy.train_inputs");
  EXPECT_EQ(status, OpenDataset(spec).status());
}

}  // namespace
}  // namespace tandem
