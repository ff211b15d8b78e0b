#include "engine/data/formats/compressed_file.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class CompressedFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Read(const std::string& content, int64_t max_bytes = 1 << 30) {
    const absl::StatusOr<std::unique_ptr<CompressedFile>> file =
        CompressedFile::Open(WriteFile(path_, content));
    if (!file.ok()) return file.status();
    return (*file)->ReadAll(max_bytes);
  }
  int64_t Stated(const std::string& content) {
    return (*CompressedFile::Open(WriteFile(path_, content)))->StatedLength();
  }
  void ExpectError(const std::string& content, const std::string& part, int64_t max_bytes = 1 << 30) {
    const absl::Status status = Read(content, max_bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + part));
  }

  const std::string path_ = FreshFolder() + "/file";
  const std::string text_ = std::string(300000, 'a') + "bc";
};

TEST_F(CompressedFileTest, ReadsPlainGzipAndXz) {
  for (const std::string& content : {text_, Gzipped(text_), Xzipped(text_)}) {
    const absl::StatusOr<std::string> read = Read(content);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text_);
    EXPECT_EQ(Stated(content), 300002);
  }
  EXPECT_EQ(*Read(Gzipped("one ") + Gzipped("two")), "one two");
  EXPECT_EQ(*Read(Xzipped("one ") + Xzipped("two")), "one two");
  EXPECT_EQ(Stated(Xzipped("one ") + Xzipped("two")), 7);
  EXPECT_EQ(*Read(""), "");
}

TEST_F(CompressedFileTest, ReadsZstdAndBzip2) {
  for (const std::string& content : {Zstded(text_), Bzipped(text_)}) {
    const absl::StatusOr<std::string> read = Read(content);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text_);
    EXPECT_EQ(Stated(content), -1);
  }
  EXPECT_EQ(*Read(Zstded("one ") + Zstded("two")), "one two");
  EXPECT_EQ(*Read(Bzipped("one ") + Bzipped("two")), "one two");
  EXPECT_EQ(*Read(Bzipped("")), "");
  EXPECT_EQ(*Read(Zstded("")), "");
}

// Readers ask for any number of bytes.
TEST_F(CompressedFileTest, ReadsInSmallPieces) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += absl::StrCat(i, ",");
  for (const std::string& content :
       {text, Gzipped(text), Xzipped(text), Zstded(text), Bzipped(text), Zip({{"a.csv", text}}, true)}) {
    const auto file = CompressedFile::Open(WriteFile(path_, content));
    ASSERT_TRUE(file.ok()) << file.status();
    std::string read;
    for (int64_t wanted = 1; true; wanted = wanted % 977 + 1) {
      std::string piece(wanted, '\0');
      const absl::StatusOr<int64_t> count = (*file)->Read(piece.data(), wanted);
      ASSERT_TRUE(count.ok()) << count.status();
      read += piece.substr(0, *count);
      if (*count < wanted) break;
    }
    EXPECT_TRUE(read == text);
  }
}

TEST_F(CompressedFileTest, ReadsTheOnlyFileOfAZipArchive) {
  const std::string zip = Zip({{"folder/", ""}, {"folder/a.csv", text_}, {"__MACOSX/._a.csv", "x"}}, false);
  EXPECT_EQ(*Read(zip), text_);
  EXPECT_EQ(Stated(zip), 300002);
  ExpectError(Zip({{"a.csv", "1"}, {"b.csv", "2"}}, false),
              " is a zip archive of 2 files, and a single file is wanted; unpack it: 'a.csv', 'b.csv'");
  ExpectError(Zip({}, false), " is a zip archive without files");
  ExpectError(zip.substr(0, zip.size() / 2), " is no zip archive, or is truncated");
  std::string damaged = zip;
  damaged[damaged.find("folder/a.csv") + 30] ^= 0x55;
  ExpectError(damaged, " is damaged: ");
}

TEST_F(CompressedFileTest, LengthsThatCannotBeAreNotBelieved) {
  // The strongest compression, so the largest growth.
  const std::string zeros(16 << 20, '\0');
  EXPECT_EQ(Stated(Gzipped(zeros)), 16 << 20);
  EXPECT_EQ(Stated(Xzipped(zeros)), 16 << 20);
  std::string gz = Gzipped("short");
  gz.replace(gz.size() - 4, 4, std::string("\0\0\1\0", 4));
  EXPECT_EQ(Stated(gz), -1);
  EXPECT_EQ(Stated(gz.substr(gz.size() - 4)), 4);
}

TEST_F(CompressedFileTest, RefusesTruncatedAndDamagedFiles) {
  const std::string gz = Gzipped(text_), xz = Xzipped(text_);
  ExpectError(gz.substr(0, gz.size() - 9), " is truncated");
  ExpectError(xz.substr(0, xz.size() - 30), " is truncated");
  std::string damaged = gz;
  damaged[damaged.size() - 6] ^= 0x55;  // Within the checksum.
  ExpectError(damaged, " is damaged");
  damaged = xz;
  damaged[25] ^= 0x55;
  ExpectError(damaged, " is damaged");
  ExpectError(xz + "more that is no stream", " is damaged");
  const std::string zstd = Zstded(text_ + xz), bz2 = Bzipped(text_ + xz);
  ExpectError(zstd.substr(0, zstd.size() - 9), " is truncated");
  ExpectError(bz2.substr(0, bz2.size() - 9), " is truncated");
  ExpectError(zstd + "more that is no stream", " is damaged: its zstd stream");
  ExpectError(bz2 + "more that is no stream", " is damaged: its bzip2 stream");
  damaged = bz2;
  damaged[bz2.size() / 2] ^= 0x55;
  ExpectError(damaged, " is damaged");
  // A window of 2 GiB.
  ExpectError(std::string("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9),
              " needs a window of more than the 128 MiB");
}

// A damaged member is no end of the file: its content would be missing.
TEST_F(CompressedFileTest, BytesBehindAGzipStreamAreRefused) {
  const std::string one = Gzipped("one "), two = Gzipped("two");
  const std::string zeros(300000, '\0');
  EXPECT_EQ(*Read(one + two + zeros), "one two");
  EXPECT_EQ(*Read(Gzipped("")), "");
  for (const std::string& rest : {std::string("x"), "\x8B" + two.substr(1), zeros + "x", zeros + two}) {
    ExpectError(one + rest, " is damaged: bytes that are no gzip stream follow its gzip stream");
  }
  ExpectError(one + "\x1F", " is truncated");
  ExpectError(one + two.substr(0, 1) + two.substr(2), " is damaged: ");
}

TEST_F(CompressedFileTest, ASmallFileThatBecomesHugeIsRefusedInTime) {
  const std::string huge(16 << 20, '\0');
  ExpectError(Gzipped(huge), " is longer than the 1000000 bytes", 1000000);
  ExpectError(Xzipped(huge), " is longer than the 1000000 bytes", 1000000);
  ExpectError(Zstded(huge), " is longer than the 1000000 bytes", 1000000);
  ExpectError(Bzipped(huge), " is longer than the 1000000 bytes", 1000000);
  ExpectError(Zip({{"a", huge}}, false), " is longer than the 1000000 bytes", 1000000);
  ExpectError(huge, " is longer than the 1000000 bytes", 1000000);
}

// The content would not fit into any memory.
TEST_F(CompressedFileTest, AFileWithoutEndIsRefusedUnread) {
  WriteFile(path_, "a,b\n");
  std::filesystem::resize_file(path_, uintmax_t{1} << 41);
  const auto file = CompressedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(std::string((*file)->ReadAll(int64_t{1} << 40).status().message()),
              HasSubstr(path_ + " is longer than the 1099511627776 bytes that can be read"));
  std::filesystem::remove(path_);
}

TEST_F(CompressedFileTest, WhatIsHeldLeavesHalfOfTheMemory) {
  EXPECT_EQ(CompressedFile::MostInMemory(1000, 10), 1000);
  const int64_t most = CompressedFile::MostInMemory(int64_t{1} << 60, 10);
  EXPECT_LT(most, int64_t{1} << 50);
  EXPECT_NEAR(static_cast<double>(CompressedFile::MostInMemory(int64_t{1} << 60, 20)), most / 2.0, 1);
}

TEST_F(CompressedFileTest, NamesTheFormatOfOtherSoftware) {
  const auto fault = [this](const std::string& content) {
    WriteFile(path_, content);
    return std::string(CompressedFile::Open(path_).status().message());
  };
  EXPECT_THAT(fault("PAR1 and so on"),
              HasSubstr("is a Parquet file, which Tandem does not read; save it as CSV"));
  EXPECT_THAT(fault(std::string("\x04\x22\x4d\x18", 4)), HasSubstr("is compressed by lz4"));
}

TEST_F(CompressedFileTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(std::string(CompressedFile::Open("/nonexistent/x").status().message()),
              HasSubstr("/nonexistent/x does not exist"));
  EXPECT_THAT(std::string(CompressedFile::Open(::testing::TempDir()).status().message()),
              HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace tandem
