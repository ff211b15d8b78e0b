#include "server/workers/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

WorkerEvent Event(int64_t sequence) {
  WorkerEvent event;
  event.set_worker_sequence(sequence);
  event.mutable_notice()->set_message(absl::StrCat("event ", sequence));
  return event;
}

std::vector<int64_t> ReadAll(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SpoolReader>> reader = SpoolReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<int64_t> sequences;
  while (reader.ok()) {
    absl::StatusOr<std::optional<WorkerEvent>> event = (*reader)->Next();
    EXPECT_TRUE(event.ok()) << event.status();
    if (!event.ok() || !event->has_value()) break;
    EXPECT_EQ((*event)->notice().message(), absl::StrCat("event ", (*event)->worker_sequence()));
    sequences.push_back((*event)->worker_sequence());
  }
  return sequences;
}

std::vector<int64_t> UpTo(int64_t last) {
  std::vector<int64_t> numbers;
  for (int64_t i = 1; i <= last; ++i) numbers.push_back(i);
  return numbers;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() : folder_(testing::TempDir() + "/spool_test_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/spool";
  }
  ~SpoolTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SpoolWriter> Create() {
    absl::StatusOr<std::unique_ptr<SpoolWriter>> writer = SpoolWriter::Create(path_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SpoolTest, GivesBackWhatWasAppended) {
  std::unique_ptr<SpoolWriter> writer = Create();
  EXPECT_TRUE(ReadAll(path_).empty());
  // More than one read buffer.
  for (int64_t i = 1; i <= 20000; ++i) ASSERT_TRUE(writer->Append(Event(i)).ok());
  ASSERT_TRUE(writer->Sync().ok());
  EXPECT_EQ(ReadAll(path_), UpTo(20000));
}

TEST_F(SpoolTest, ReadsEventsLargerThanItsBuffer) {
  std::unique_ptr<SpoolWriter> writer = Create();
  WorkerEvent large;
  large.set_worker_sequence(1);
  large.mutable_notice()->set_message(std::string(1 << 20, 'x'));
  ASSERT_TRUE(writer->Append(large).ok());
  ASSERT_TRUE(writer->Append(Event(2)).ok());
  absl::StatusOr<std::unique_ptr<SpoolReader>> reader = SpoolReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*(*reader)->Next())->notice().message().size(), 1 << 20);
  EXPECT_EQ((*(*reader)->Next())->worker_sequence(), 2);
}

TEST_F(SpoolTest, ASecondWriterIsRefused) {
  Create();
  EXPECT_EQ(SpoolWriter::Create(path_).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(SpoolTest, ReadsOnAsMoreIsWritten) {
  std::unique_ptr<SpoolWriter> writer = Create();
  SpoolReader reader(writer.get());
  EXPECT_FALSE(reader.Next()->has_value());
  ASSERT_TRUE(writer->Append(Event(1)).ok());
  const int64_t limit = writer->end();
  ASSERT_TRUE(writer->Append(Event(2)).ok());
  EXPECT_EQ((*reader.Next(limit))->worker_sequence(), 1);
  EXPECT_FALSE(reader.Next(limit)->has_value());
  EXPECT_EQ((*reader.Next())->worker_sequence(), 2);
}

TEST_F(SpoolTest, DropsWhatIsNotNeededAnyMore) {
  std::unique_ptr<SpoolWriter> writer = Create();
  SpoolReader reader(writer.get());
  for (int64_t i = 1; i <= 3; ++i) ASSERT_TRUE(writer->Append(Event(i)).ok());
  ASSERT_TRUE(reader.Next().ok());
  ASSERT_TRUE(reader.Next().ok());

  ASSERT_TRUE(writer->DropBefore(reader.offset()).ok());
  reader.Seek(SpoolWriter::kFirstOffset);
  ASSERT_TRUE(writer->Append(Event(4)).ok());
  EXPECT_EQ(ReadAll(path_), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ((*reader.Next())->worker_sequence(), 3);
  EXPECT_EQ((*reader.Next())->worker_sequence(), 4);

  ASSERT_TRUE(writer->DropBefore(writer->end()).ok());
  reader.Seek(SpoolWriter::kFirstOffset);
  EXPECT_EQ(writer->end(), SpoolWriter::kFirstOffset);
  EXPECT_FALSE(reader.Next()->has_value());
  ASSERT_TRUE(writer->Append(Event(5)).ok());
  EXPECT_EQ((*reader.Next())->worker_sequence(), 5);
  EXPECT_EQ(ReadAll(path_), std::vector<int64_t>{5});
}

TEST_F(SpoolTest, CutAtAnyByteItEndsAtTheLastWholeEvent) {
  std::vector<int64_t> ends;
  {
    std::unique_ptr<SpoolWriter> writer = Create();
    for (int64_t i = 1; i <= 4; ++i) {
      ASSERT_TRUE(writer->Append(Event(i)).ok());
      ends.push_back(writer->end());
    }
  }
  const std::string content = ReadFile(path_);
  ASSERT_EQ(content.size(), ends.back());
  for (size_t size = 0; size <= content.size(); ++size) {
    WriteFile(path_, content.substr(0, size));
    int64_t whole = 0;
    while (whole < ends.size() && ends[whole] <= size) ++whole;
    EXPECT_EQ(ReadAll(path_), UpTo(whole)) << "cut at byte " << size;
  }
}

TEST_F(SpoolTest, AnyDamagedByteEndsItBeforeThatEvent) {
  std::vector<int64_t> ends;
  {
    std::unique_ptr<SpoolWriter> writer = Create();
    for (int64_t i = 1; i <= 4; ++i) {
      ASSERT_TRUE(writer->Append(Event(i)).ok());
      ends.push_back(writer->end());
    }
  }
  const std::string content = ReadFile(path_);
  for (size_t at = 8; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] ^= 0x41;
    WriteFile(path_, damaged);
    int64_t whole = 0;
    while (ends[whole] <= at) ++whole;
    EXPECT_EQ(ReadAll(path_), UpTo(whole)) << "damaged at byte " << at;
  }
}

TEST_F(SpoolTest, RefusesAFileThatIsNoSpool) {
  WriteFile(path_, "something else");
  EXPECT_EQ(SpoolReader::Open(path_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(SpoolReader::Open(path_ + "2").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tandem
