#include "server/worker/event_reporter.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/faulty_env.h"
#include "engine/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/eventually.h"
#include "server/store/temporary_folder.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::ConnectRequest;
using internal::v1::ConnectResponse;
using internal::v1::WorkerEvent;
using internal::v1::WorkerService;

constexpr absl::Duration kDeadline = absl::Seconds(60);

WorkerEvent Notice(int64_t number) {
  WorkerEvent event;
  event.mutable_report()->mutable_notice()->set_message(std::to_string(number));
  return event;
}

WorkerEvent Progress() {
  WorkerEvent event;
  event.mutable_report()->mutable_progress()->set_step(1);
  return event;
}

// A daemon that keeps events in memory and behaves as the test says.
class FakeDaemon : public WorkerService::Service {
 public:
  explicit FakeDaemon(std::string path) : path_(std::move(path)) {}
  ~FakeDaemon() override { Stop(); }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }

  // Ends each stream after this many events, without acknowledging the last; 0: never.
  void BreakAfter(int events) {
    MutexLock lock(&mutex_);
    break_after_ = events;
  }
  void Acknowledge(bool yes) {
    MutexLock lock(&mutex_);
    acknowledge_ = yes;
  }
  // With the next event, forgets all events except the first `kept` and breaks the connection, like a daemon
  // whose database was restored.
  void ForgetNext(int kept) {
    MutexLock lock(&mutex_);
    kept_ = kept;
  }
  void CancelNext() {
    MutexLock lock(&mutex_);
    cancel_ = true;
  }
  void DismissNext() {
    MutexLock lock(&mutex_);
    dismiss_ = true;
  }

  bool WaitForEvents(size_t count) {
    MutexLock lock(&mutex_);
    wanted_ = count;
    return mutex_.AwaitWithTimeout(absl::Condition(
                                       +[](FakeDaemon* daemon) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                         return daemon->events_.size() >= daemon->wanted_;
                                       },
                                       this),
                                   kDeadline);
  }
  // Returns each event once, in order.
  std::vector<WorkerEvent> events() {
    MutexLock lock(&mutex_);
    return events_;
  }
  int repeats() {
    MutexLock lock(&mutex_);
    return repeats_;
  }
  bool has_gap() {
    MutexLock lock(&mutex_);
    return has_gap_;
  }
  // Returns the number of events of each message.
  std::vector<int> together() {
    MutexLock lock(&mutex_);
    return together_;
  }
  // Returns the bytes of the largest message of several events.
  size_t largest() {
    MutexLock lock(&mutex_);
    return largest_;
  }

  grpc::Status Connect(grpc::ServerContext*,
                       grpc::ServerReaderWriter<ConnectResponse, ConnectRequest>* stream) override {
    ConnectRequest request;
    if (!stream->Read(&request) || !request.has_hello()) return grpc::Status::OK;
    ConnectResponse response;
    {
      MutexLock lock(&mutex_);
      if (dismiss_) {
        response.mutable_dismissal()->set_message("go away");
      } else {
        response.mutable_acknowledgement()->set_worker_sequence(events_.size());
      }
    }
    stream->Write(response);
    if (response.has_dismissal()) return grpc::Status::OK;
    {
      MutexLock lock(&mutex_);
      response.Clear();
      if (cancel_) response.mutable_cancel();
      cancel_ = false;
    }
    if (response.has_cancel()) stream->Write(response);
    for (int count = 0; stream->Read(&request);) {
      response.Clear();
      {
        MutexLock lock(&mutex_);
        if (kept_ >= 0) {
          events_.resize(std::exchange(kept_, -1));
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "as the test wants it");
        }
        largest_ = std::max(largest_, request.events_size() > 1 ? request.ByteSizeLong() : 0);
        together_.push_back(request.events_size());
        for (const WorkerEvent& event : request.events()) {
          const int64_t sequence = event.worker_sequence();
          if (sequence == events_.size() + 1) {
            events_.push_back(event);
          } else if (sequence <= events_.size()) {
            ++repeats_;
          } else {
            has_gap_ = true;
          }
          if (++count == break_after_)
            return grpc::Status(grpc::StatusCode::UNAVAILABLE, "as the test wants it");
        }
        if (!acknowledge_) continue;
        response.mutable_acknowledgement()->set_worker_sequence(events_.size());
      }
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

 private:
  const std::string path_;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  std::vector<WorkerEvent> events_ ABSL_GUARDED_BY(mutex_);
  int repeats_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_gap_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> together_ ABSL_GUARDED_BY(mutex_);
  size_t largest_ ABSL_GUARDED_BY(mutex_) = 0;
  int break_after_ ABSL_GUARDED_BY(mutex_) = 0;
  bool acknowledge_ ABSL_GUARDED_BY(mutex_) = true;
  int kept_ ABSL_GUARDED_BY(mutex_) = -1;
  bool cancel_ ABSL_GUARDED_BY(mutex_) = false;
  bool dismiss_ ABSL_GUARDED_BY(mutex_) = false;
  size_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;
};

class EventReporterTest : public testing::Test {
 protected:
  EventReporterTest() {
    options_.job_id = "job";
    options_.attempt = 1;
    options_.daemon_target = "unix:" + folder_.path() + "/socket";
    options_.spool_path = folder_.path() + "/spool";
    options_.on_cancel = [this] {
      MutexLock lock(&mutex_);
      cancelled_ = true;
    };
    options_.on_dismissed = [this](absl::string_view message) {
      MutexLock lock(&mutex_);
      dismissed_ = std::string(message);
    };
    daemon_ = std::make_unique<FakeDaemon>(folder_.path() + "/socket");
  }
  ~EventReporterTest() override {
    reporter_.reset();
    daemon_.reset();
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<EventReporter>> reporter = EventReporter::Create(options_);
    ASSERT_TRUE(reporter.ok()) << reporter.status();
    reporter_ = *std::move(reporter);
  }
  void Report(int64_t from, int64_t to) {
    for (int64_t i = from; i <= to; ++i) {
      const absl::Status status = reporter_->Report(Notice(i));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // Checks that the daemon has notices 1 to `count`, each once.
  void ExpectNotices(int64_t count) {
    const std::vector<WorkerEvent> events = daemon_->events();
    ASSERT_EQ(events.size(), count);
    for (int64_t i = 1; i <= count; ++i) {
      ASSERT_EQ(events[i - 1].report().notice().message(), std::to_string(i));
      ASSERT_TRUE(events[i - 1].has_time());
    }
    EXPECT_FALSE(daemon_->has_gap());
  }

  // A short path for the socket, whatever TEST_TMPDIR is.
  const TemporaryFolder folder_{"/tmp/event_reporter_test_"};
  EventReporter::Options options_;
  std::unique_ptr<FakeDaemon> daemon_;
  std::unique_ptr<EventReporter> reporter_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string dismissed_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(EventReporterTest, DeliversInOrder) {
  daemon_->Start();
  Start();
  Report(1, 20000);
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  ExpectNotices(20000);
  EXPECT_EQ(daemon_->repeats(), 0);
}

TEST_F(EventReporterTest, ProgressWaitsForOtherEvents) {
  options_.progress_wait = absl::Hours(1);
  daemon_->Start();
  Start();
  Report(1, 1);
  ASSERT_TRUE(daemon_->WaitForEvents(1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reporter_->Report(Progress()).ok());
  Report(5, 5);
  ASSERT_TRUE(daemon_->WaitForEvents(5));
  EXPECT_THAT(daemon_->together(), testing::ElementsAre(1, 4));
  // Nothing follows, so the end sends them.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(reporter_->Report(Progress()).ok());
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  EXPECT_THAT(daemon_->together(), testing::ElementsAre(1, 4, 2));
}

TEST_F(EventReporterTest, ProgressWaitsForATimeOnly) {
  options_.progress_wait = absl::Milliseconds(1);
  daemon_->Start();
  Start();
  ASSERT_TRUE(reporter_->Report(Progress()).ok());
  EXPECT_TRUE(daemon_->WaitForEvents(1));
}

TEST_F(EventReporterTest, SeveralEventsAMessageAreSmall) {
  WorkerEvent event;
  event.mutable_report()->mutable_notice()->set_message(std::string(20'000, 'x'));
  WorkerEvent large;
  large.mutable_report()->mutable_notice()->set_message(std::string(1'000'000, 'x'));
  Start();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(reporter_->Report(i == 5 ? large : event).ok());
  daemon_->Start();
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  EXPECT_EQ(daemon_->events().size(), 10);
  EXPECT_THAT(daemon_->together(), testing::ElementsAre(3, 2, 1, 3, 1));
  EXPECT_LE(daemon_->largest(), 66'000);
}

TEST_F(EventReporterTest, WaitsForADaemon) {
  Start();
  Report(1, 100);
  EXPECT_FALSE(reporter_->Drain(absl::Milliseconds(20)));
  daemon_->Start();
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  ExpectNotices(100);
}

TEST_F(EventReporterTest, TheLogSaysThatNoDaemonAnswers) {
  const auto sink = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  const std::string complaint =
      absl::StrCat("cannot reach the daemon at ", options_.daemon_target, ": no answer for ");
  const auto count = [&] {
    const std::vector<std::string> lines = sink->last_formatted();
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return absl::StrContains(line, complaint); });
  };
  // Polls for a generous time.
  const auto becomes = [&](int lines) {
    return Eventually([&] { return count() >= lines; }, kDeadline) && count() == lines;
  };
  options_.first_complaint = absl::Milliseconds(100);
  options_.complaint_interval = absl::Hours(1);
  Start();
  EXPECT_TRUE(becomes(1));
  daemon_->Start();
  Report(1, 1);
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  // A new silence has its own line.
  daemon_->Stop();
  EXPECT_TRUE(becomes(2));
  reporter_.reset();
  spdlog::set_default_logger(before);
}

TEST_F(EventReporterTest, GoesOnAfterBreaks) {
  daemon_->BreakAfter(700);
  daemon_->Start();
  options_.trim_bytes = 10000;
  Start();
  Report(1, 5000);
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  ExpectNotices(5000);
}

TEST_F(EventReporterTest, GoesOnWithTheNextDaemon) {
  daemon_->Start();
  Start();
  for (int round = 0; round < 3; ++round) {
    Report(round * 1000 + 1, round * 1000 + 500);
    ASSERT_TRUE(daemon_->WaitForEvents(round * 1000 + 1));
    daemon_->Stop();
    Report(round * 1000 + 501, round * 1000 + 1000);
    daemon_->Start();
  }
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  ExpectNotices(3000);
}

TEST_F(EventReporterTest, SendsAgainWhatTheDaemonHasLost) {
  daemon_->Start();
  Start();
  Report(1, 10);
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  daemon_->ForgetNext(4);
  Report(11, 20);
  ASSERT_TRUE(daemon_->WaitForEvents(20));
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  EXPECT_FALSE(daemon_->has_gap());
  ExpectNotices(20);
}

TEST_F(EventReporterTest, WhatWasNotAcknowledgedStaysInTheSpool) {
  daemon_->Acknowledge(false);
  daemon_->Start();
  Start();
  Report(1, 10);
  ASSERT_TRUE(daemon_->WaitForEvents(10));
  reporter_.reset();
  absl::StatusOr<std::unique_ptr<SpoolReader>> spool = SpoolReader::Open(options_.spool_path);
  ASSERT_TRUE(spool.ok());
  for (int64_t i = 1; i <= 10; ++i) {
    const absl::StatusOr<std::optional<WorkerEvent>> event = (*spool)->Next();
    ASSERT_TRUE(event.ok() && event->has_value());
    EXPECT_EQ((*event)->worker_sequence(), i);
  }
}

TEST_F(EventReporterTest, TheSpoolDoesNotGrowWhileTheDaemonListens) {
  daemon_->Start();
  options_.trim_bytes = 1000;
  Start();
  for (int64_t i = 1; i <= 5000; ++i) {
    Report(i, i);
    if (i % 100 == 0) {
      ASSERT_TRUE(reporter_->Drain(kDeadline));
    }
  }
  // A hundred events plus the rest, in records below 50 bytes.
  EXPECT_LT(std::filesystem::file_size(options_.spool_path), 100 * 50 + 2000);
  ExpectNotices(5000);
}

TEST_F(EventReporterTest, DropsProgressAloneWhenThereIsNoRoom) {
  options_.max_spool_bytes = 1000;
  Start();
  Report(1, 100);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(reporter_->Report(Progress()).ok());
  Report(101, 110);
  daemon_->Start();
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  const std::vector<WorkerEvent> events = daemon_->events();
  // The notices, plus a notice with the number of dropped events.
  ASSERT_EQ(events.size(), 111);
  EXPECT_TRUE(absl::StartsWith(events[100].report().notice().message(), "10 progress reports were dropped"))
      << events[100].DebugString();
  EXPECT_FALSE(daemon_->has_gap());

  ASSERT_TRUE(reporter_->Report(Progress()).ok());
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  EXPECT_TRUE(daemon_->events().back().report().has_progress());
}

TEST_F(EventReporterTest, AFullDiskDropsProgressOfAFullSpool) {
  FaultyEnv env;
  options_.env = &env;
  options_.max_spool_bytes = 1000;
  Start();
  Report(1, 100);
  env.FailAfter(0, absl::ResourceExhaustedError("no space left on device"));
  EXPECT_TRUE(reporter_->Report(Progress()).ok());
  reporter_.reset();  // Destroyed before its file system.
}

TEST_F(EventReporterTest, OnAFullDiskEventsWaitForRoomAndTrainingGoesOn) {
  FaultyEnv env;
  options_.env = &env;
  options_.room_patience = kDeadline;
  daemon_->Start();
  Start();
  Report(1, 3);
  ASSERT_TRUE(daemon_->WaitForEvents(3));
  env.FailAfter(0, absl::ResourceExhaustedError("no space left on device"));
  Report(4, 8);
  WorkerEvent progress;
  progress.mutable_report()->mutable_progress()->set_step(1);
  EXPECT_TRUE(reporter_->Report(progress).ok());
  EXPECT_EQ(daemon_->events().size(), 3);
  // The last event and its caller wait.
  WorkerEvent finished;
  finished.mutable_finished()->set_state(v1::JOB_STATE_SUCCEEDED);
  std::thread room([&env] {
    absl::SleepFor(absl::Milliseconds(300));
    env.FailAfter(1 << 30);
  });
  EXPECT_TRUE(reporter_->Report(finished).ok());
  room.join();
  EXPECT_TRUE(reporter_->Drain(kDeadline));
  const std::vector<WorkerEvent> events = daemon_->events();
  ASSERT_EQ(events.size(), 9);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(events[i].report().notice().message(), std::to_string(i + 1));
  EXPECT_TRUE(events[8].has_finished());
  reporter_.reset();  // Destroyed before its file system.
}

TEST_F(EventReporterTest, AFullDiskIsNotWaitedForForEver) {
  FaultyEnv env;
  options_.env = &env;
  options_.room_patience = absl::Milliseconds(300);
  options_.most_unspooled = 2;
  daemon_->Start();
  Start();
  env.FailAfter(0, absl::ResourceExhaustedError("no space left on device"));
  EXPECT_TRUE(reporter_->Report(Notice(1)).ok());
  WorkerEvent finished;
  finished.mutable_finished()->set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(reporter_->Report(finished).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(reporter_->Report(Notice(2)).code(), absl::StatusCode::kResourceExhausted);
  // Other errors are returned at once.
  env.FailAfter(0, absl::UnavailableError("the disk does not answer"));
  EXPECT_EQ(reporter_->Report(Notice(3)).code(), absl::StatusCode::kUnavailable);
  reporter_.reset();
}

TEST_F(EventReporterTest, PassesACancelOn) {
  daemon_->CancelNext();
  daemon_->Start();
  Start();
  MutexLock lock(&mutex_);
  EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), kDeadline));
}

TEST_F(EventReporterTest, PassesADismissalOnAndStops) {
  daemon_->DismissNext();
  daemon_->Start();
  Start();
  Report(1, 1);
  EXPECT_FALSE(reporter_->Drain(kDeadline));
  MutexLock lock(&mutex_);
  EXPECT_TRUE(
      mutex_.AwaitWithTimeout(absl::Condition(
                                  +[](std::string* message) { return *message == "go away"; }, &dismissed_),
                              kDeadline));
}

}  // namespace
}  // namespace tandem
