#include "tests/integration/watcher.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tandem/v1/job_service.grpc.pb.h"

namespace tandem::testing {
namespace {

// Returns whether the status means a broken connection or a daemon that stopped. If a call reaches a server
// just when it shuts down, gRPC answers CANCELLED, although this client did not cancel.
bool IsBroken(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

}  // namespace

Watcher::Watcher(const DaemonProcess& daemon, std::string job)
    : job_(std::move(job)),
      authorization_(absl::StrCat("Bearer ", daemon.Token())),
      channel_(daemon.NewChannel()) {
  thread_ = std::thread([this] { Run(); });
}

Watcher::~Watcher() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  thread_.join();
}

void Watcher::Run() {
  const auto stub = v1::JobService::NewStub(channel_);
  while (true) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", authorization_);
    context.set_wait_for_ready(true);
    v1::WatchJobRequest request;
    request.set_name(job_);
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      context_ = &context;
      ++calls_;
      request.set_after_sequence(events_.empty() ? 0 : events_.back().sequence());
    }
    const std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader = stub->WatchJob(&context, request);
    for (v1::JobEvent event; reader->Read(&event);) {
      MutexLock lock(&mutex_);
      events_.push_back(event);
    }
    const grpc::Status status = reader->Finish();
    MutexLock lock(&mutex_);
    context_ = nullptr;
    status_ = status;
    if (!stopping_ && IsBroken(status)) continue;
    ended_ = true;
    return;
  }
}

bool Watcher::WaitForEnd(absl::Duration timeout) const {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&ended_), timeout);
}

bool Watcher::WaitForEvents(int64_t count, absl::Duration timeout) const {
  MutexLock lock(&mutex_);
  const auto enough = [this, count]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return ended_ || static_cast<int64_t>(events_.size()) >= count;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&enough), timeout);
  return static_cast<int64_t>(events_.size()) >= count;
}

int64_t Watcher::count() const {
  MutexLock lock(&mutex_);
  return events_.size();
}

bool Watcher::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

std::vector<v1::JobEvent> Watcher::events() const {
  MutexLock lock(&mutex_);
  return events_;
}

grpc::Status Watcher::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

int Watcher::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

std::vector<v1::JobEvent> ReadEvents(const DaemonProcess& daemon, const std::string& job) {
  const auto stub = v1::JobService::NewStub(daemon.NewChannel());
  grpc::ClientContext context;
  daemon.Prepare(context);
  context.set_wait_for_ready(true);
  v1::WatchJobRequest request;
  request.set_name(job);
  std::vector<v1::JobEvent> events;
  const std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader = stub->WatchJob(&context, request);
  for (v1::JobEvent event; reader->Read(&event);) events.push_back(event);
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_code() << " " << status.error_message();
  return events;
}

void ExpectWholeLog(const std::vector<v1::JobEvent>& events, const std::string& job) {
  ASSERT_FALSE(events.empty());
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].sequence(), i + 1) << events[i].DebugString();
    ASSERT_EQ(events[i].job(), job);
    ASSERT_EQ(events[i].terminal(), i + 1 == events.size()) << events[i].DebugString();
  }
}

void ExpectSameLog(const std::vector<v1::JobEvent>& expected, const std::vector<v1::JobEvent>& actual) {
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    ASSERT_TRUE(google::protobuf::util::MessageDifferencer::Equals(expected[i], actual[i]))
        << "at " << i << " expected\n"
        << expected[i].DebugString() << "and not\n"
        << actual[i].DebugString();
  }
  ASSERT_EQ(expected.size(), actual.size());
}

}  // namespace tandem::testing
