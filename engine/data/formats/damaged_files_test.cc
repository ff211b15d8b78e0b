// Files of every format with random damage, the same in each run. No file ends the program. A file that can
// be opened can also be described. Run it with the sanitizers.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/philox.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr int kRounds = 100;

class DamagedFilesTest : public ::testing::Test {
 protected:
  uint32_t Below(size_t limit) { return random_.NextBelow(static_cast<uint32_t>(limit)); }

  // Returns the file with up to six changes, most of them near its beginning with the headers.
  std::string Damaged(std::string file) {
    for (uint32_t changes = 1 + Below(6); changes > 0 && !file.empty(); --changes) {
      const size_t at = Below(3) == 0 ? Below(file.size()) : Below(std::min<size_t>(file.size(), 128));
      switch (Below(6)) {
        case 0:
          file[at] = static_cast<char>(file[at] ^ (1 << Below(8)));
          break;
        case 1:
          file[at] = static_cast<char>(Below(256));
          break;
        case 2:
          file.resize(at);
          break;
        case 3:
          file.insert(at, 1 + Below(9), static_cast<char>(Below(256)));
          break;
        case 4:
          file.erase(at, 1 + Below(16));
          break;
        case 5:  // The largest or the smallest number.
          for (size_t i = at; i < std::min(file.size(), at + 8); ++i) file[i] = Below(2) == 0 ? '\xFF' : '\0';
          break;
      }
    }
    return file;
  }

  // Damages the file at `path`, which holds `file`, again and again.
  void Try(const std::string& path, const std::string& file, const v1::DatasetSpec& spec) {
    WriteFile(path, file);
    ASSERT_TRUE(OpenDataset(spec).ok()) << OpenDataset(spec).status();
    for (int round = 0; round < kRounds; ++round) {
      WriteFile(path, Damaged(file));
      const absl::StatusOr<DatasetInfo> described = DescribeDataset(spec);
      const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
      if (!opened.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(opened.status()))
            << path << ", round " << round << ": " << opened.status();
        continue;
      }
      ASSERT_TRUE(described.ok()) << path << ", round " << round << ": " << described.status();
      EXPECT_EQ(opened->train->size(), described->train_samples) << path << ", round " << round;
      std::vector<uint32_t> indices(std::min<int64_t>(opened->train->size(), 100));
      for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint32_t>(i);
      std::vector<uint8_t> samples(indices.size() * opened->train->sample_bytes());
      std::vector<uint8_t> targets(indices.size() * opened->train->target_bytes());
      ASSERT_TRUE(opened->train->Gather(indices, samples.data(), targets.data()).ok());
    }
  }

  const std::string folder_ = FreshFolder();
  RandomStream random_{1, RandomPurpose::kShuffle, 0, 0};
};

TEST_F(DamagedFilesTest, Arrays) {
  const std::string inputs = Npy("<f4", "(4, 3)", std::string(48, '\0'));
  const std::string targets = Npy("<i8", "(4,)", std::string(32, '\0'));
  v1::DatasetSpec spec;
  v1::NpySource* npy = spec.mutable_npy();
  npy->mutable_train_targets()->set_path(WriteFile(folder_ + "/y.npy", targets));
  const std::string path = folder_ + "/x";
  npy->mutable_train_inputs()->set_path(path);
  Try(path, inputs, spec);
  for (const bool large : {false, true}) Try(path, Zip({{"x.npy", inputs}}, large), spec);
}

TEST_F(DamagedFilesTest, Idx) {
  const std::string header("\0\0\x08\x03\0\0\0\4\0\0\0\2\0\0\0\3", 16);
  v1::DatasetSpec spec;
  spec.mutable_idx()->set_train_labels(
      WriteFile(folder_ + "/labels", std::string("\0\0\x08\x01\0\0\0\4\0\1\0\1", 12)));
  const std::string path = folder_ + "/images";
  spec.mutable_idx()->set_train_images(path);
  const std::string file = header + std::string(24, 'x');
  for (const std::string& form : {file, Gzipped(file), Xzipped(file)}) Try(path, form, spec);
}

TEST_F(DamagedFilesTest, Tables) {
  v1::DatasetSpec spec;
  const std::string path = folder_ + "/table";
  spec.mutable_csv()->set_train(path);
  Try(path, "a,\"b\"\"\",c\r\n1,\"2\",3\r\n\"4\",5e3,\"6\"\r\n", spec);
  Try(path, "size;kind\n1;cat\n2;\xC3\xA9l\xC3\xA9phant\n", [&] {
    v1::DatasetSpec semicolons = spec;
    semicolons.mutable_csv()->set_delimiter(";");
    return semicolons;
  }());
}

TEST_F(DamagedFilesTest, Texts) {
  v1::DatasetSpec spec;
  const std::string path = folder_ + "/text";
  spec.mutable_text()->set_train(path);
  spec.mutable_text()->set_sequence_length(4);
  Try(path, "hello, \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 and hello again", spec);
}

TEST_F(DamagedFilesTest, Images) {
  const std::string rows(12, '\0');  // Three rows of a filter and three pixels.
  std::string packed(64, '\0');
  uLongf size = packed.size();
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                       reinterpret_cast<const Bytef*>(rows.data()), rows.size()),
            Z_OK);
  packed.resize(size);
  const std::string header("\0\0\0\3\0\0\0\3\x08\0\0\0\0", 13);
  const std::string png =
      "\x89PNG\r\n\x1A\n" + PngChunk("IHDR", header) + PngChunk("IDAT", packed) + PngChunk("IEND", "");
  std::filesystem::create_directories(folder_ + "/train/a");
  std::filesystem::create_directories(folder_ + "/train/b");
  WriteFile(folder_ + "/train/b/1.png", png);
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder_ + "/train");
  spec.mutable_image_folder()->set_height(5);
  spec.mutable_image_folder()->set_width(2);
  for (const v1::ImageResize resize :
       {v1::IMAGE_RESIZE_STRETCH, v1::IMAGE_RESIZE_CROP, v1::IMAGE_RESIZE_PAD}) {
    spec.mutable_image_folder()->set_resize(resize);
    Try(folder_ + "/train/a/1.png", png, spec);
  }
}

}  // namespace
}  // namespace tandem
