#include "server/workers/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/faulty_env.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

WorkerEvent Event(int64_t sequence) {
  WorkerEvent event;
  event.set_worker_sequence(sequence);
  event.mutable_report()->mutable_notice()->set_message(absl::StrCat("event ", sequence));
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
    EXPECT_EQ((*event)->report().notice().message(), absl::StrCat("event ", (*event)->worker_sequence()));
    sequences.push_back((*event)->worker_sequence());
  }
  return sequences;
}

std::vector<int64_t> UpTo(int64_t last) {
  std::vector<int64_t> numbers;
  for (int64_t i = 1; i <= last; ++i) numbers.push_back(i);
  return numbers;
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

class SpoolTest : public testing::Test {
 protected:
  std::unique_ptr<SpoolWriter> Create() {
    absl::StatusOr<std::unique_ptr<SpoolWriter>> writer = SpoolWriter::Create(path_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/spool";
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
  large.mutable_report()->mutable_notice()->set_message(std::string(1 << 20, 'x'));
  ASSERT_TRUE(writer->Append(large).ok());
  ASSERT_TRUE(writer->Append(Event(2)).ok());
  absl::StatusOr<std::unique_ptr<SpoolReader>> reader = SpoolReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*(*reader)->Next())->report().notice().message().size(), 1 << 20);
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
  const std::string content = ContentOrEmpty(path_);
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
  const std::string content = ContentOrEmpty(path_);
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

// A worker's use of its spool: it appends, syncs before it reports the end of training, and drops
// acknowledged events. Counts its progress up to a failure.
struct Progress {
  int64_t appended = 0;
  int64_t synced = 0;
  int64_t dropped = 0;
};

Progress UseSpool(RandomAccessEnv* env) {
  Progress progress;
  const auto writer = SpoolWriter::Create("/attempt/spool", env);
  if (!writer.ok()) return progress;
  const auto append = [&](int count) {
    for (int i = 0; i < count; ++i) {
      if (!(*writer)->Append(Event(progress.appended + 1)).ok()) return false;
      ++progress.appended;
    }
    return true;
  };
  const auto sync = [&] {
    if (!(*writer)->Sync().ok()) return false;
    progress.synced = progress.appended;
    return true;
  };
  // The daemon acknowledges all but the last `kept`.
  const auto drop = [&](int kept) {
    SpoolReader reader(writer->get());
    for (int64_t i = progress.dropped; i < progress.appended - kept; ++i) {
      const auto event = reader.Next();
      if (!event.ok() || !event->has_value()) return false;
    }
    // The daemon has these events, even if the spool cannot be trimmed.
    progress.dropped = progress.appended - kept;
    return (*writer)->DropBefore(reader.offset()).ok();
  };
  append(3) && sync() && append(2) && drop(0) && append(4) && drop(2) && append(1) && sync() && drop(1) &&
      append(2) && sync() && drop(0) && append(3) && sync();
  return progress;
}

// The process or the machine stops at any operation on files. The reader must get the events in order,
// without a gap that the daemon does not fill, and with all events that were reported as durable.
TEST(SpoolCrashTest, AfterACrashAnywhereNothingIsMissing) {
  FaultyEnv whole;
  ASSERT_EQ(UseSpool(&whole).synced, 15);
  int crashes = 0;
  for (const auto unsynced :
       {FaultyEnv::Unsynced::kKept, FaultyEnv::Unsynced::kLost, FaultyEnv::Unsynced::kSome}) {
    for (int point = 0; point <= whole.changes(); ++point) {
      for (uint64_t seed = 0; seed < (unsynced == FaultyEnv::Unsynced::kSome ? 200 : 1); ++seed) {
        SCOPED_TRACE(absl::StrCat("ending ", static_cast<int>(unsynced), " at ", point, ", seed ", seed));
        FaultyEnv env;
        env.FailAfter(point);
        const Progress progress = UseSpool(&env);
        env.CutPower(unsynced, seed);
        ++crashes;
        // The daemon's final state: it accepts only the next number, and knows the events that it has.
        int64_t has = progress.dropped;
        const auto reader = SpoolReader::Open("/attempt/spool", &env);
        if (!reader.ok()) {
          ASSERT_EQ(reader.status().code(), absl::StatusCode::kNotFound) << reader.status();
        }
        int64_t last = 0;
        while (reader.ok()) {
          const auto event = (*reader)->Next();
          ASSERT_TRUE(event.ok()) << event.status();
          if (!event->has_value()) break;
          const int64_t sequence = (*event)->worker_sequence();
          ASSERT_TRUE(last == 0 || sequence == last + 1) << sequence << " after " << last;
          last = sequence;
          ASSERT_LE(sequence, has + 1);
          ASSERT_EQ((*event)->report().notice().message(), absl::StrCat("event ", sequence));
          has = std::max(has, sequence);
        }
        ASSERT_GE(has, unsynced == FaultyEnv::Unsynced::kKept ? progress.appended : progress.synced);
        ASSERT_LE(has, progress.appended + 1);
      }
    }
  }
  std::cout << whole.changes() + 1 << " points, " << crashes << " crashes\n";
}

// A failed operation leaves the file unchanged, and the next operation continues.
TEST(SpoolCrashTest, AfterAFailureAnywhereItGoesOn) {
  FaultyEnv whole;
  UseSpool(&whole);
  for (int point = 0; point < whole.changes(); ++point) {
    SCOPED_TRACE(point);
    FaultyEnv env;
    env.FailOnceAfter(point, absl::ResourceExhaustedError("full"));
    auto writer = SpoolWriter::Create("/attempt/spool", &env);
    if (!writer.ok()) continue;
    int64_t next = 1;
    int64_t first = 1;
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 3; ++i) next += (*writer)->Append(Event(next)).ok() ? 1 : 0;
      SpoolReader reader(writer->get());
      ASSERT_TRUE(reader.Next().ok());
      if ((*writer)->DropBefore(reader.offset()).ok()) ++first;
      (*writer)->Sync().IgnoreError();
    }
    ASSERT_TRUE((*writer)->Sync().ok());
    const auto reader = SpoolReader::Open("/attempt/spool", &env);
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (int64_t i = first; i < next; ++i) {
      const auto event = (*reader)->Next();
      ASSERT_TRUE(event.ok() && event->has_value());
      ASSERT_EQ((*event)->worker_sequence(), i);
    }
    ASSERT_FALSE((*reader)->Next()->has_value());
  }
}

}  // namespace
}  // namespace tandem
