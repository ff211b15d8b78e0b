#include "client/lib/tensorboard_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::HasSubstr;

class TensorBoardFileTest : public ::testing::Test {
 protected:
  TensorBoardFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-tb-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/events";
    job_.mutable_create_time()->set_seconds(1'000'000);
  }
  ~TensorBoardFileTest() override { std::filesystem::remove_all(folder_); }

  static v1::JobEvent Report(int64_t sequence) {
    v1::JobEvent event;
    event.set_sequence(sequence);
    event.mutable_time()->set_seconds(1'000'000 + sequence);
    event.mutable_progress()->set_step(sequence * 10);
    event.mutable_progress()->mutable_training()->set_loss(1.0 / static_cast<double>(sequence));
    return event;
  }
  std::unique_ptr<TensorBoardFile> Open() {
    absl::StatusOr<std::unique_ptr<TensorBoardFile>> file =
        TensorBoardFile::Open(path_, job_, "    epochs: 3");
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  std::string Read() const {
    std::ostringstream content;
    content << std::ifstream(path_, std::ios::binary).rdbuf();
    return content.str();
  }
  void Write(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }

  std::string folder_;
  std::string path_;
  v1::Job job_;
};

TEST_F(TensorBoardFileTest, ChecksumsAreCastagnolis) {
  // The check value of CRC-32C, and a vector of RFC 3720.
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST_F(TensorBoardFileTest, AFileCutAnywhereContinuesToTheSameBytes) {
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(file->Add(Report(i)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  const std::string whole = Read();
  for (size_t size = 0; size <= whole.size(); ++size) {
    Write(whole.substr(0, size));
    const std::unique_ptr<TensorBoardFile> file = Open();
    ASSERT_NE(file, nullptr) << size;
    // The file ignores events that it already holds.
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(file->Add(Report(i)).ok());
    ASSERT_EQ(file->last_sequence(), 3);
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_EQ(Read(), whole) << size;
  }
}

TEST_F(TensorBoardFileTest, ADamagedRecordAndItsSuccessorsAreWrittenAgain) {
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(file->Add(Report(i)).ok());
  }
  const std::string whole = Read();
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;
  Write(damaged);
  {
    const std::unique_ptr<TensorBoardFile> file = Open();
    EXPECT_EQ(file->last_sequence(), 2);
    ASSERT_TRUE(file->Add(Report(3)).ok());
  }
  EXPECT_EQ(Read(), whole);
}

TEST_F(TensorBoardFileTest, SomebodysFileStays) {
  Write("somebody's work");
  const absl::Status status = TensorBoardFile::Open(path_, job_, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not an event file of this program"));
  EXPECT_EQ(Read(), "somebody's work");
}

TEST_F(TensorBoardFileTest, TwoWritersDoNotMix) {
  const std::unique_ptr<TensorBoardFile> file = Open();
  EXPECT_TRUE(absl::IsAborted(TensorBoardFile::Open(path_, job_, "").status()));
}

TEST_F(TensorBoardFileTest, EventsWithoutScalarsMakeNoRecord) {
  const std::unique_ptr<TensorBoardFile> file = Open();
  const std::string before = Read();
  v1::JobEvent event;
  event.set_sequence(1);
  event.mutable_notice()->set_message("cold");
  ASSERT_TRUE(file->Add(event).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Read(), before);
}

}  // namespace
}  // namespace tandem::client
