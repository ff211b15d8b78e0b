#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// A record of CIFAR-10, or of CIFAR-100 with its coarse label first.
std::string Record(const std::string& labels, char pixel) { return labels + std::string(3072, pixel); }
std::string Record(int label, char pixel) { return Record(std::string(1, static_cast<char>(label)), pixel); }

std::string Tar(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string tar;
  for (const auto& [name, content] : members) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(124, 11, absl::StrFormat("%011o", content.size()));
    header[156] = '0';
    header.replace(257, 8, std::string("ustar\00000", 8));
    header.replace(148, 8, 8, ' ');
    int sum = 0;
    for (const char c : header) sum += static_cast<uint8_t>(c);
    header.replace(148, 7, absl::StrFormat("%06o", sum) + std::string(1, '\0'));
    tar += header + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

class CifarTest : public ::testing::Test {
 protected:
  // Six files of two records each. Labels are 0 1, 2 3, ... and pixels have the same numbers.
  std::vector<std::pair<std::string, std::string>> Files() {
    std::vector<std::pair<std::string, std::string>> files;
    for (int i = 0; i < 5; ++i) {
      files.emplace_back(
          absl::StrCat("data_batch_", i + 1, ".bin"),
          Record(2 * i, static_cast<char>(2 * i)) + Record(2 * i + 1, static_cast<char>(2 * i + 1)));
    }
    files.emplace_back("test_batch.bin", Record(7, 70));
    return files;
  }

  void ExpectAll() {
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec_);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->shape, Shape({3, 32, 32}));
    EXPECT_EQ(info->classes, 10);
    EXPECT_EQ(info->train_samples, 10);
    EXPECT_EQ(info->validation_samples, 1);
    EXPECT_EQ(info->class_names[9], "truck");
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    const std::vector<uint8_t> samples = Samples<uint8_t>(*opened->train);
    for (size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(samples[i], i / 3072);
    EXPECT_THAT(Targets<int32_t>(*opened->validation), ElementsAre(7));
  }

  const std::string folder_ = FreshFolder();
  v1::DatasetSpec spec_;
};

TEST_F(CifarTest, ReadsAFolderOfPlainOrCompressedFiles) {
  spec_.mutable_cifar()->set_path(folder_);
  int i = 0;
  for (const auto& [name, content] : Files()) {
    // A third of the files is plain, a third gzip, a third xz.
    const int how = i++ % 3;
    WriteFile(absl::StrCat(folder_, "/", name,
                           how == 1   ? ".gz"
                           : how == 2 ? ".xz"
                                      : ""),
              how == 1   ? Gzipped(content)
              : how == 2 ? Xzipped(content)
                         : content);
  }
  ExpectAll();
}

TEST_F(CifarTest, ReadsTheArchiveAsItIsPublished) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, content] : Files()) members.emplace_back("cifar-10-batches-bin/" + name, content);
  std::swap(members[0], members[3]);
  members.emplace_back("cifar-10-batches-bin/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\ntruck\n\n");
  spec_.mutable_cifar()->set_path(WriteFile(folder_ + "/cifar.tar.gz", Gzipped(Tar(members))));
  ExpectAll();
  EXPECT_EQ(DescribeDataset(spec_)->class_names[0], "a");
  const std::string tar = Tar(members);
  WriteFile(folder_ + "/cifar.tar.gz", tar.substr(0, 9000));
  ExpectViolation(spec_, "cifar.path", "is truncated");
  WriteFile(folder_ + "/cifar.tar.gz", "no archive at all" + std::string(1000, 'x'));
  ExpectViolation(spec_, "cifar.path", "checksum is wrong");
}

// A hidden file of the right name would replace the real one.
TEST_F(CifarTest, SkipsHiddenMembersAndRefusesDoubles) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, content] : Files()) members.emplace_back("./" + name, content);
  const std::string other = Record(9, 99) + Record(9, 99);
  members.emplace_back("./.trash/data_batch_1.bin", other);
  members.emplace_back("__MACOSX/data_batch_2.bin", other);
  spec_.mutable_cifar()->set_path(WriteFile(folder_ + "/cifar.tar", Tar(members)));
  ExpectAll();
  members.emplace_back("./old/data_batch_3.bin", other);
  WriteFile(folder_ + "/cifar.tar", Tar(members));
  ExpectViolation(spec_, "cifar.path",
                  "two files of the same name, ./data_batch_3.bin and ./old/data_batch_3.bin; remove one");

  const std::string unpacked = folder_ + "/unpacked";
  std::filesystem::create_directories(unpacked + "/old");
  for (const auto& [name, content] : Files()) WriteFile(unpacked + "/" + name, content);
  // A compressed file beside the plain one is left out.
  WriteFile(unpacked + "/data_batch_1.bin.gz", Gzipped(other));
  spec_.mutable_cifar()->set_path(unpacked);
  ExpectAll();
  WriteFile(unpacked + "/old/data_batch_3.bin", other);
  ExpectViolation(spec_, "cifar.path", "two files of the same name");
}

// A gzip file of two members states the length of the last member.
TEST_F(CifarTest, ReadsAllMembersOfAGzipFile) {
  spec_.mutable_cifar()->add_train(WriteFile(
      folder_ + "/train.gz", Gzipped(Record(3, 1) + Record(4, 2)) + Gzipped(Record(5, 3) + Record(6, 4))));
  const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec_);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->train_samples, 4);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(3, 4, 5, 6));
}

TEST_F(CifarTest, RefusesMembersThatClaimHugeLengths) {
  const std::vector<std::pair<std::string, std::string>> members = Files();
  std::string zip = Zip(members, /*large=*/true);
  // The first member of the directory claims the most records that a length can state.
  const std::string sizes = Little(1, 2) + Little(16, 2);
  const size_t at = zip.find(sizes + Little(members[0].second.size(), 8));
  ASSERT_NE(at, std::string::npos);
  const int64_t claimed = std::numeric_limits<int64_t>::max() / 3073 * 3073;
  zip.replace(at + sizes.size(), 8, Little(claimed, 8));
  spec_.mutable_cifar()->set_path(WriteFile(folder_ + "/cifar.zip", zip));
  ExpectViolation(spec_, "cifar.path", "data_batch_1.bin is longer than the 8589934592 bytes");
}

TEST_F(CifarTest, SaysThatMembersMustNotBeCompressed) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, content] : Files()) members.emplace_back(name + ".gz", Gzipped(content));
  spec_.mutable_cifar()->set_path(WriteFile(folder_ + "/cifar.tar", Tar(members)));
  ExpectViolation(spec_, "cifar.path",
                  "has no data_batch_1.bin (CIFAR-10); it must have data_batch_1.bin to data_batch_5.bin, or "
                  "train.bin, and these files must not be compressed within the archive");
}

TEST_F(CifarTest, ReadsListedFilesAndBothLabelsOfCifar100) {
  const std::string content = Record(std::string("\x05\x50", 2), 1) + Record(std::string("\x13\x63", 2), 2);
  v1::CifarSource* cifar = spec_.mutable_cifar();
  cifar->add_train(WriteFile(folder_ + "/train.bin", content));
  ExpectViolation(spec_, "cifar.train[0]", "not a multiple of the 3073 of a record of CIFAR-10");
  cifar->set_variant(v1::CIFAR_VARIANT_CIFAR100);
  absl::StatusOr<OpenedDataset> opened = OpenDataset(spec_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.classes, 100);
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(0x50, 0x63));
  cifar->set_labels(v1::CIFAR_LABELS_COARSE);
  opened = OpenDataset(spec_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.classes, 20);
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(5, 0x13));
  EXPECT_EQ(opened->validation, nullptr);
}

TEST_F(CifarTest, RefusesWhatIsNotCifar) {
  spec_.mutable_cifar()->set_path(folder_);
  ExpectViolation(spec_, "cifar.path", "has no data_batch_1.bin");
  for (const auto& [name, content] : Files()) WriteFile(folder_ + "/" + name, content);
  WriteFile(folder_ + "/data_batch_3.bin", Record(1, 1).substr(0, 3000));
  ExpectViolation(spec_, "cifar.path", "data_batch_3.bin holds 3000 bytes");
  WriteFile(folder_ + "/data_batch_3.bin", Record(1, 1) + Record(77, 1));
  ExpectViolation(spec_, "cifar.path", "holds label 77 in record 1, outside the 10 classes", false);
  const std::string xz = Xzipped(Record(1, 1) + Record(2, 2));
  std::filesystem::remove(folder_ + "/data_batch_3.bin");
  WriteFile(folder_ + "/data_batch_3.bin.xz", xz.substr(0, xz.size() - 20));
  ExpectViolation(spec_, "cifar.path", "data_batch_3.bin.xz is truncated");
  std::string damaged = xz;
  damaged[30] ^= 0x55;
  WriteFile(folder_ + "/data_batch_3.bin.xz", damaged);
  ExpectViolation(spec_, "cifar.path", "data_batch_3.bin.xz is damaged", false);
  spec_.mutable_cifar()->add_train("x");
  ExpectViolation(spec_, "cifar.train", "give one of them");
  // A few bytes that claim to be 3.6 GB of records. No memory is reserved for them.
  std::string forged = Gzipped("short");
  const uint32_t stated = 1195435u * 3073u;
  for (int i = 0; i < 4; ++i) forged[forged.size() - 4 + i] = static_cast<char>(stated >> (8 * i));
  spec_.mutable_cifar()->clear_path();
  spec_.mutable_cifar()->set_train(0, WriteFile(folder_ + "/forged.gz", forged));
  ExpectViolation(spec_, "cifar.train[0]", "is damaged");
  spec_.clear_cifar();
  spec_.mutable_cifar();
  ExpectViolation(spec_, "cifar.path", "is required");
}

}  // namespace
}  // namespace tandem
