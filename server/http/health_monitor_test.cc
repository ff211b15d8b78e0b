#include "server/http/health_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <utility>

#include "server/http/health_pages.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// A part whose answers the test controls.
class FakePart {
 public:
  HealthMonitor::Part Part(const std::string& name) {
    return {name,
            [this](HealthMonitor::Answer answer) {
              MutexLock lock(&mutex_);
              if (answers_) {
                answer(status_);
              } else {
                owed_.push_back(std::move(answer));
              }
            },
            [this] { return is_busy_.load(); }};
  }
  void SetBusy(bool is_busy) { is_busy_ = is_busy; }
  // Answers now and in future with this status.
  void Answer(const absl::Status& status) {
    std::deque<HealthMonitor::Answer> owed;
    {
      MutexLock lock(&mutex_);
      answers_ = true;
      status_ = status;
      owed.swap(owed_);
    }
    for (HealthMonitor::Answer& answer : owed) answer(status);
  }
  void Hang() {
    MutexLock lock(&mutex_);
    answers_ = false;
  }
  void AwaitAsked() {
    MutexLock lock(&mutex_);
    const auto asked = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !owed_.empty(); };
    ASSERT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&asked), absl::Minutes(1)));
  }

 private:
  std::atomic<bool> is_busy_ = false;
  Mutex mutex_;
  bool answers_ ABSL_GUARDED_BY(mutex_) = true;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::deque<HealthMonitor::Answer> owed_ ABSL_GUARDED_BY(mutex_);
};

class HealthMonitorTest : public testing::Test {
 protected:
  void Start() {
    HealthMonitor::Options options;
    options.interval = absl::Milliseconds(1);
    options.patience = absl::Seconds(30);
    options.clock = &clock_;
    options.serving = [this] {
      MutexLock lock(&mutex_);
      return serving_;
    };
    options.on_round = [this](const Health& health) {
      MutexLock lock(&mutex_);
      last_ = health;
      ++rounds_;
    };
    monitor_ = std::make_unique<HealthMonitor>(
        std::move(options),
        std::vector<HealthMonitor::Part>{store_.Part("the store"), scheduler_.Part("the scheduler")});
  }
  // Blocks for two more rounds: the second starts after everything before.
  Health Next() {
    MutexLock lock(&mutex_);
    const int enough = rounds_ + 2;
    const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rounds_ >= enough; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&done), absl::Minutes(1)));
    return last_;
  }
  void SetServing(const absl::Status& status) {
    MutexLock lock(&mutex_);
    serving_ = status;
  }

  FakeClock clock_{absl::FromUnixSeconds(1000)};
  FakePart store_;
  FakePart scheduler_;
  Mutex mutex_;
  absl::Status serving_ ABSL_GUARDED_BY(mutex_);
  Health last_ ABSL_GUARDED_BY(mutex_);
  int rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  // Destroyed before the objects that it calls.
  std::unique_ptr<HealthMonitor> monitor_;
};

TEST_F(HealthMonitorTest, AllIsWell) {
  Start();
  const Health health = Next();
  EXPECT_TRUE(health.alive.ok()) << health.alive;
  EXPECT_TRUE(health.ready.ok()) << health.ready;
  EXPECT_EQ(HealthPage(health.ready).status, 200);
  EXPECT_EQ(HealthPage(health.ready).body, "ok\n");
}

TEST_F(HealthMonitorTest, APartThatFailsIsAliveAndNotReadyUntilItMends) {
  store_.Answer(absl::ResourceExhaustedError("the disk is full"));
  Start();
  Health health = Next();
  EXPECT_TRUE(health.alive.ok());
  EXPECT_THAT(std::string(health.ready.message()), HasSubstr("the store: the disk is full"));
  EXPECT_EQ(HealthPage(health.ready).status, 503);
  EXPECT_THAT(HealthPage(health.ready).body, HasSubstr("disk is full"));
  store_.Answer(absl::OkStatus());
  health = Next();
  EXPECT_TRUE(health.ready.ok()) << health.ready;
}

TEST_F(HealthMonitorTest, APartThatHangsIsGivenItsTimeAndIsNotAskedTwice) {
  scheduler_.Hang();
  Start();
  scheduler_.AwaitAsked();
  clock_.Advance(absl::Seconds(29));
  EXPECT_TRUE(Next().alive.ok());
  clock_.Advance(absl::Seconds(2));
  Health health = Next();
  EXPECT_THAT(std::string(health.alive.message()),
              HasSubstr("the scheduler has not answered for 31 seconds"));
  EXPECT_FALSE(health.ready.ok());
  EXPECT_FALSE(monitor_->Now().alive.ok());
  scheduler_.Answer(absl::OkStatus());
  EXPECT_TRUE(Next().alive.ok());
}

// For example the store while it saves the content of a removed database.
TEST_F(HealthMonitorTest, APartThatIsBusyIsAliveAndNotReady) {
  store_.Hang();
  store_.SetBusy(true);
  Start();
  store_.AwaitAsked();
  EXPECT_TRUE(Next().ready.ok());
  clock_.Advance(absl::Seconds(31));
  const Health health = Next();
  EXPECT_TRUE(health.alive.ok()) << health.alive;
  EXPECT_THAT(std::string(health.ready.message()), HasSubstr("the store has been busy for 31 seconds"));
  store_.SetBusy(false);
  EXPECT_FALSE(Next().alive.ok());
}

TEST_F(HealthMonitorTest, ADaemonThatStopsIsAliveAndNotReady) {
  Start();
  SetServing(absl::UnavailableError("the daemon is shutting down"));
  const Health health = monitor_->Now();
  EXPECT_TRUE(health.alive.ok());
  EXPECT_EQ(health.ready.message(), "the daemon is shutting down");
}

TEST_F(HealthMonitorTest, AnswersMayComeWhenItIsGone) {
  scheduler_.Hang();
  Start();
  scheduler_.AwaitAsked();
  monitor_ = nullptr;
  scheduler_.Answer(absl::OkStatus());
}

}  // namespace
}  // namespace tandem
