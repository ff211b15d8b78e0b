// Tests the limits of a user and of all users: LIMITS.md.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/rpc/service_fixture.h"
#include "server/rpc/status_details.h"
#include "server/store/eventually.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string ReasonOf(const grpc::Status& status) { return DetailOf<google::rpc::ErrorInfo>(status).reason(); }

bool SaysWhenToComeAgain(const grpc::Status& status) {
  const auto delay = DetailOf<google::rpc::RetryInfo>(status).retry_delay();
  return delay.seconds() > 0 || delay.nanos() > 0;
}

class LimitsTest : public ServiceFixture {
 protected:
  explicit LimitsTest(int64_t max_queued_jobs = 0) { max_queued_jobs_ = max_queued_jobs; }

  grpc::Status CreateAs(const std::string& token, v1::Job* job, bool validate_only = false) {
    v1::CreateJobRequest request = Request("job");
    request.set_validate_only(validate_only);
    return stub_->CreateJob(Context(token).get(), request, job);
  }
  grpc::Status UploadAs(const std::string& token, int64_t bytes, v1::Upload* upload) {
    v1::CreateUploadRequest request;
    request.mutable_upload()->set_manifest_sha256(std::string(32, static_cast<char>(bytes % 200 + 1)));
    request.mutable_upload()->set_files(1);
    request.mutable_upload()->set_bytes(bytes);
    return dataset_stub_->CreateUpload(Context(token).get(), request, upload);
  }
};

TEST_F(LimitsTest, TheDisksUse) {
  const std::string token = MakeToken("ann");
  SetQuota({.max_disk_bytes = 1 << 20});
  disk_use_ = (1 << 20) - 1;
  v1::Job job;
  ASSERT_TRUE(CreateAs(token, &job).ok());
  disk_use_ = 1 << 20;
  grpc::Status refused = CreateAs(token, &job);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "DISK_QUOTA_EXCEEDED");
  EXPECT_THAT(refused.error_message(), HasSubstr("\"ann\": jobs and uploads use 1.0 MiB"));
  EXPECT_THAT(refused.error_message(), HasSubstr("--user-max-disk"));
  EXPECT_FALSE(SaysWhenToComeAgain(refused)) << "waiting does not help";
  // After deleting jobs, the user has room in a moment.
  is_removing_ = true;
  refused = CreateAs(token, &job);
  EXPECT_EQ(ReasonOf(refused), "DISK_QUOTA_EXCEEDED");
  EXPECT_TRUE(SaysWhenToComeAgain(refused)) << refused.error_message();
  is_removing_ = false;
  // The administrator has no quota.
  EXPECT_TRUE(CreateAs(kToken, &job).ok());

  // An upload counts with its final size.
  disk_use_ = 0;
  v1::Upload upload;
  const grpc::Status first = UploadAs(token, 600'000, &upload);
  ASSERT_TRUE(first.ok()) << first.error_message();
  // Continuing it adds nothing.
  v1::Upload again;
  ASSERT_TRUE(UploadAs(token, 600'000, &again).ok());
  EXPECT_EQ(again.name(), upload.name());
  refused = UploadAs(token, 500'000, &upload);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "DISK_QUOTA_EXCEEDED");
  disk_use_ = 500'000;
  EXPECT_EQ(CreateAs(token, &job).error_code(), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(LimitsTest, TwoUploadsAtOnceDoNotBothTakeTheRestOfTheDisk) {
  const std::string token = MakeToken("ann");
  SetQuota({.max_disk_bytes = 1'000'000});
  for (int round = 0; round < 50; ++round) {
    std::vector<v1::Upload> uploads(4);
    std::vector<std::thread> calls;
    std::atomic<int> made = 0;
    for (size_t i = 0; i < uploads.size(); ++i) {
      calls.emplace_back([&, i] {
        if (UploadAs(token, 600'000 + static_cast<int64_t>(i), &uploads[i]).ok()) ++made;
      });
    }
    for (std::thread& call : calls) call.join();
    ASSERT_EQ(made, 1) << "in round " << round;
    for (const v1::Upload& upload : uploads) {
      if (upload.name().empty()) continue;
      const auto request = Named<v1::DeleteUploadRequest>(upload.name());
      google::protobuf::Empty empty;
      ASSERT_TRUE(dataset_stub_->DeleteUpload(Context(token).get(), request, &empty).ok());
    }
  }
}

// Reading a large data set takes long, and a spec that names it in another way reads it again.
TEST_F(LimitsTest, ASlowAdmissionHoldsUpNobodyElse) {
  const std::string ann = MakeToken("ann"), bob = MakeToken("bob");
  absl::Notification end;
  admission_.slow = &end;
  std::atomic<int> admitted = 0;
  std::vector<std::thread> calls;
  for (int i = 0; i < 10; ++i) {
    calls.emplace_back([&] {
      v1::CreateJobRequest request = Request("slow");
      request.set_validate_only(true);
      v1::Job job;
      if (stub_->CreateJob(Context(ann).get(), request, &job).ok()) ++admitted;
    });
  }
  while (admission_.slow_ones < 2) absl::SleepFor(absl::Milliseconds(1));
  for (int i = 0; i < 10; ++i) {
    v1::Job job, found;
    ASSERT_TRUE(CreateAs(bob, &job).ok());
    v1::GetJobRequest get;
    get.set_name(job.name());
    EXPECT_TRUE(stub_->GetJob(Context(bob).get(), get, &found).ok());
    // Ann's other calls are not delayed either.
    EXPECT_TRUE(stub_->GetJob(Context(ann).get(), get, &found).ok());
  }
  EXPECT_EQ(admission_.slow_ones, 2);
  end.Notify();
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(admitted, 10);
}

// A waiting call keeps its request in memory.
TEST_F(LimitsTest, AUsersCallsThatWaitAreSoMany) {
  const std::string ann = MakeToken("ann"), bob = MakeToken("bob");
  absl::Notification end;
  admission_.slow = &end;
  constexpr int kTaken = 512 + 2, kCalls = kTaken + 20;
  v1::CreateJobRequest request = Request("slow");
  request.set_validate_only(true);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<v1::Job> jobs(kCalls);
  std::atomic<int> refused = 0, admitted = 0;
  for (int i = 0; i < kCalls; ++i) {
    // The first calls run and no longer wait.
    while (i >= 2 && admission_.slow_ones < 2) absl::SleepFor(absl::Milliseconds(1));
    contexts.push_back(Context(ann));
    stub_->async()->CreateJob(contexts[i].get(), &request, &jobs[i], [&](const grpc::Status& status) {
      if (status.ok()) {
        ++admitted;
      } else if (ReasonOf(status) == "TOO_MANY_WAITING_CALLS" && SaysWhenToComeAgain(status)) {
        ++refused;
      }
    });
  }
  Eventually([&] { return refused >= kCalls - kTaken; });
  EXPECT_EQ(refused, kCalls - kTaken);
  v1::Job job;
  EXPECT_TRUE(CreateAs(bob, &job).ok());
  end.Notify();
  Eventually([&] { return refused + admitted >= kCalls; });
  EXPECT_EQ(admitted, kTaken);
}

// Calls that run on a thread, and calls that wait for one.
class CallsThatWaitTest : public LimitsTest {
 protected:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    v1::Job job;
    std::atomic<bool> has_ended = false;
    grpc::Status status;
  };

  void SetUp() override {
    LimitsTest::SetUp();
    ann_ = MakeToken("ann");
    admission_.slow = &end_;
    request_ = Request("slow");
    request_.set_validate_only(true);
    for (Call& call : calls_) {
      call.context = Context(ann_);
      stub_->async()->CreateJob(call.context.get(), &request_, &call.job, [&call](grpc::Status status) {
        call.status = std::move(status);
        call.has_ended = true;
      });
    }
    while (admission_.slow_ones < 2) absl::SleepFor(absl::Milliseconds(1));
    const std::string started = "CreateJob started";
    const auto all_came = [&] {
      const std::vector<std::string> calls = Calls();
      return std::count(calls.begin(), calls.end(), started) == std::size(calls_);
    };
    while (!all_came()) absl::SleepFor(absl::Milliseconds(1));
  }
  void TearDown() override {
    Release();
    for (Call& call : calls_) {
      while (!call.has_ended) absl::SleepFor(absl::Milliseconds(1));
    }
    LimitsTest::TearDown();
  }
  void Release() {
    if (!end_.HasBeenNotified()) end_.Notify();
  }
  int Ended() {
    return static_cast<int>(std::count_if(std::begin(calls_), std::end(calls_),
                                          [](const Call& call) { return call.has_ended.load(); }));
  }
  bool AwaitEnded(int count) {
    return Eventually([&] { return Ended() >= count; });
  }

  static constexpr int kCalls = 50;
  absl::Notification end_;
  std::string ann_;
  v1::CreateJobRequest request_;
  Call calls_[kCalls];
};

TEST_F(CallsThatWaitTest, AreDroppedWhenTheirClientIsGone) {
  for (Call& call : calls_) call.context->TryCancel();
  EXPECT_TRUE(AwaitEnded(kCalls));
  // The daemon learns of a cancellation later than the client.
  const std::string dropped = "CreateJob CANCELLED";
  const auto all_dropped = [&] {
    const std::vector<std::string> calls = Calls();
    return std::count(calls.begin(), calls.end(), dropped) == kCalls - 2;
  };
  EXPECT_TRUE(Eventually(all_dropped)) << "though no thread is free";
  Release();
  v1::Job job;
  EXPECT_TRUE(CreateAs(ann_, &job).ok());
  EXPECT_EQ(admission_.slow_ones, 2) << "of the others nothing was looked at";
}

TEST_F(CallsThatWaitTest, AreDroppedWhenTheDaemonStops) {
  user_pool_->Drop();
  // All calls except the running ones.
  EXPECT_TRUE(AwaitEnded(kCalls - 2));
  for (const Call& call : calls_) {
    if (!call.has_ended) continue;
    EXPECT_EQ(call.status.error_code(), StatusCode::UNAVAILABLE) << call.status.error_message();
  }
  EXPECT_EQ(Ended(), kCalls - 2);
}

TEST_F(CallsThatWaitTest, EndWithTheirToken) {
  Revoke("ann");
  EXPECT_TRUE(AwaitEnded(kCalls)) << "though no thread is free";
  for (const Call& call : calls_) {
    EXPECT_THAT(call.status.error_code(), AnyOf(StatusCode::CANCELLED, StatusCode::UNAUTHENTICATED));
  }
  Release();
}

TEST_F(LimitsTest, RequestsThatAreTooLargeDoNotWait) {
  v1::DescribeModelRequest describe;
  describe.mutable_model()->set_name(std::string(2 << 20, 'x'));
  v1::ModelDescription description;
  EXPECT_EQ(ReasonOf(model_stub_->DescribeModel(Context().get(), describe, &description)), "SPEC_TOO_LARGE");
  v1::CreateDatasetRequest create;
  create.mutable_dataset()->mutable_spec()->set_name(std::string(2 << 20, 'x'));
  v1::Dataset dataset;
  EXPECT_EQ(ReasonOf(dataset_stub_->CreateDataset(Context().get(), create, &dataset)), "SPEC_TOO_LARGE");
  v1::EvaluateRequest evaluate;
  evaluate.mutable_dataset()->set_name(std::string(2 << 20, 'x'));
  auto context = Context();
  EXPECT_EQ(ReasonOf(model_stub_->Evaluate(context.get(), evaluate)->Finish()), "SPEC_TOO_LARGE");
  v1::PredictRequest predict;
  *predict.mutable_dataset() = evaluate.dataset();
  auto other = Context();
  EXPECT_EQ(ReasonOf(model_stub_->Predict(other.get(), predict)->Finish()), "SPEC_TOO_LARGE");
}

class QueueLimitTest : public LimitsTest {
 protected:
  QueueLimitTest() : LimitsTest(/*max_queued_jobs=*/2) {}

  grpc::Status SweepOf(int jobs, bool validate_only = false) {
    v1::CreateSweepRequest request;
    request.set_validate_only(validate_only);
    v1::Sweep& sweep = *request.mutable_sweep();
    sweep.mutable_base()->set_name("small");
    sweep.set_max_running(1);
    sweep.add_grid()->set_field("training.epochs");
    for (int i = 1; i <= jobs; ++i) sweep.mutable_grid(0)->add_values()->set_number_value(i);
    v1::Sweep made;
    return sweep_stub_->CreateSweep(Context().get(), request, &made);
  }
  // The scheduler follows the store after a moment.
  void AwaitQueued(int64_t jobs) {
    ASSERT_TRUE(Eventually([&] { return scheduler_->queued_jobs() == jobs; })) << scheduler_->queued_jobs();
  }
};

TEST_F(QueueLimitTest, ASweepCountsWithAllOfItsJobs) {
  grpc::Status refused = SweepOf(3);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_THAT(refused.error_message(),
              HasSubstr("cannot queue the 3 jobs of the sweep: the daemon's queue has 0 of at most 2 jobs"));
  EXPECT_THAT(refused.error_message(), HasSubstr("--max-queued-jobs"));
  EXPECT_THAT(refused.error_message(), HasSubstr("make the sweep smaller"));
  EXPECT_FALSE(SaysWhenToComeAgain(refused)) << "it never fits";
  EXPECT_TRUE(jobs_->NonTerminalJobs()->empty());

  for (int i = 0; i < 2; ++i) workers_.AwaitStarted(Id(Create("runs")));
  Create("waits");
  AwaitQueued(1);
  for (const bool validate_only : {true, false}) {
    refused = SweepOf(2, validate_only);
    EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
    EXPECT_THAT(refused.error_message(), HasSubstr("or try again later"));
    EXPECT_TRUE(SaysWhenToComeAgain(refused));
  }
  const grpc::Status made = SweepOf(1);
  EXPECT_TRUE(made.ok()) << made.error_message();
}

TEST_F(QueueLimitTest, AJobThatIsResumedCountsAsANewOne) {
  for (int i = 0; i < 2; ++i) workers_.AwaitStarted(Id(Create("runs")));
  const std::string rests = Create("rests");
  v1::Job job;
  ASSERT_TRUE(stub_->PauseJob(Context().get(), Named<v1::PauseJobRequest>(rests), &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  AwaitQueued(0);
  const std::string waits = Create("waits");
  Create("waits");
  AwaitQueued(2);
  v1::ResumeJobRequest resume;
  resume.set_name(rests);
  const grpc::Status refused = stub_->ResumeJob(Context().get(), resume, &job);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_TRUE(SaysWhenToComeAgain(refused));
  EXPECT_EQ(jobs_->Get(Id(rests))->state(), v1::JOB_STATE_PAUSED);
  // A job that is already queued takes no more room.
  resume.set_name(waits);
  EXPECT_TRUE(stub_->ResumeJob(Context().get(), resume, &job).ok());
  ASSERT_TRUE(CancelAs(kToken, waits).ok());
  AwaitQueued(1);
  resume.set_name(rests);
  EXPECT_TRUE(stub_->ResumeJob(Context().get(), resume, &job).ok());
}

// Otherwise it would be queued and fail at its turn.
TEST_F(QueueLimitTest, AJobWhoseWeightsAreGoneIsNotResumed) {
  for (int i = 0; i < 2; ++i) workers_.AwaitStarted(Id(Create("runs")));
  const std::string source = Create("source");
  v1::CreateJobRequest request = Request("next");
  request.mutable_spec()->mutable_initial_weights()->mutable_artifact()->set_job(source);
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
  const std::string next = job.name();
  ASSERT_TRUE(stub_->PauseJob(Context().get(), Named<v1::PauseJobRequest>(next), &job).ok());
  ASSERT_TRUE(CancelAs(kToken, source).ok());
  google::protobuf::Empty empty;
  ASSERT_TRUE(stub_->DeleteJob(Context().get(), Named<v1::DeleteJobRequest>(source), &empty).ok());
  AwaitQueued(0);
  v1::ResumeJobRequest resume;
  resume.set_name(next);
  const grpc::Status refused = stub_->ResumeJob(Context().get(), resume, &job);
  EXPECT_EQ(refused.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(refused), "INITIAL_WEIGHTS_DELETED");
  EXPECT_THAT(refused.error_message(), HasSubstr(source));
  EXPECT_EQ(jobs_->Get(Id(next))->state(), v1::JOB_STATE_PAUSED);
  // The job has kept the weights from an earlier run.
  const std::string kept = KeptWeightsPath(jobs_->FolderOf(Id(next)));
  std::filesystem::create_directories(std::filesystem::path(kept).parent_path());
  std::ofstream(kept) << "weights";
  const grpc::Status resumed = stub_->ResumeJob(Context().get(), resume, &job);
  EXPECT_TRUE(resumed.ok()) << resumed.error_message();
}

TEST_F(QueueLimitTest, TheQueuesLength) {
  // There are two devices, so two jobs run and two wait.
  for (int i = 0; i < 2; ++i) workers_.AwaitStarted(Id(Create("runs")));
  std::vector<std::string> waiting;
  for (int i = 0; i < 2; ++i) waiting.push_back(Create("waits"));
  v1::Job job;
  // The scheduler follows the store after a moment.
  grpc::Status refused;
  Eventually([&] { return !(refused = CreateAs(kToken, &job, /*validate_only=*/true)).ok(); });
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_THAT(refused.error_message(), HasSubstr("--max-queued-jobs"));
  EXPECT_TRUE(SaysWhenToComeAgain(refused));
  ASSERT_TRUE(CancelAs(kToken, waiting[0]).ok());
  Eventually([&] { return CreateAs(kToken, &job, /*validate_only=*/true).ok(); });
  EXPECT_TRUE(CreateAs(kToken, &job).ok());
}

// Each finds room before the others take it.
TEST_F(QueueLimitTest, SubmitsAtOnceDoNotPassTheLimit) {
  for (int i = 0; i < 2; ++i) workers_.AwaitStarted(Id(Create("runs")));
  constexpr int kSubmits = 60;
  std::atomic<int> made = 0, full = 0;
  std::vector<std::thread> submits;
  for (int i = 0; i < kSubmits; ++i) {
    submits.emplace_back([&] {
      v1::Job job;
      const grpc::Status status = CreateAs(kToken, &job);
      if (status.ok()) ++made;
      if (ReasonOf(status) == "QUEUE_FULL") ++full;
    });
  }
  for (std::thread& submit : submits) submit.join();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(full, kSubmits - 2);
  EXPECT_EQ(jobs_->queued_jobs(), 2);
}

TEST_F(LimitsTest, TheRateOfCalls) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  SetQuota({.calls_per_second = 1});
  v1::Daemon daemon;
  grpc::Status refused;
  int answered = 0;
  while (answered < 100 && (refused = daemon_stub_->GetDaemon(Context(ann).get(), {}, &daemon)).ok())
    ++answered;
  // A burst, plus the rate meanwhile.
  EXPECT_GE(answered, 5);
  EXPECT_LT(answered, 50);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "CALL_RATE_EXCEEDED");
  EXPECT_TRUE(SaysWhenToComeAgain(refused));
  EXPECT_TRUE(daemon_stub_->GetDaemon(Context(bob).get(), {}, &daemon).ok());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(daemon_stub_->GetDaemon(Context().get(), {}, &daemon).ok());
}

TEST_F(LimitsTest, StreamsThatAreOpen) {
  const std::string token = MakeToken("ann");
  SetQuota({.max_streams = 2});
  const auto watch = [&](grpc::ClientContext* context) {
    auto reader = stub_->WatchJobs(context, {});
    reader->WaitForInitialMetadata();
    return reader;
  };
  auto first = Context(token), second = Context(token), third = Context(token);
  auto one = watch(first.get());
  auto two = watch(second.get());
  const grpc::Status refused = watch(third.get())->Finish();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_STREAMS");
  EXPECT_TRUE(SaysWhenToComeAgain(refused));
  // Calls that are no streams are not limited, nor is the administrator.
  v1::Daemon daemon;
  EXPECT_TRUE(daemon_stub_->GetDaemon(Context(token).get(), {}, &daemon).ok());
  auto admins = Context();
  auto watched = watch(admins.get());
  // A stream that its client leaves makes room.
  first->TryCancel();
  EXPECT_EQ(one->Finish().error_code(), StatusCode::CANCELLED);
  grpc::Status status(StatusCode::RESOURCE_EXHAUSTED, "");
  Eventually([&] {
    auto context = Context(token);
    auto again = watch(context.get());
    context->TryCancel();
    status = again->Finish();
    return status.error_code() != StatusCode::RESOURCE_EXHAUSTED;
  });
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
  second->TryCancel();
  admins->TryCancel();
}

TEST_F(LimitsTest, WithoutATokenNobodyKeepsAPlaceByNotReading) {
  const std::string token = MakeToken("ann");
  SetQuota({.max_streams = 1});
  const std::string job = Create("watched");
  workers_.AwaitStarted(Id(job));
  // Far more than a client buffers without reading.
  std::vector<internal::v1::WorkerEvent> events = {Started(1)};
  for (int64_t sequence = 2; sequence <= 2000; ++sequence) {
    events.emplace_back().set_worker_sequence(sequence);
    events.back().mutable_report()->mutable_notice()->set_message(std::string(1000, 'x'));
  }
  Report(job, std::move(events));
  grpc::ChannelArguments arguments;
  // Its window does not grow.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::JobService::NewStub(NewChannel(arguments));
  auto context = Context(token);
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
  auto reader = stub->WatchJob(context.get(), Named<v1::WatchJobRequest>(job));
  reader->WaitForInitialMetadata();
  EXPECT_FALSE(limits_->Open("ann").ok());
  Revoke("ann");
  // Nothing is read, and yet the call ends with the right reason.
  const std::string ended = "WatchJob UNAUTHENTICATED stream";
  const auto has_ended = [&] {
    const std::vector<std::string> calls = Calls();
    return std::find(calls.begin(), calls.end(), ended) != calls.end();
  };
  EXPECT_TRUE(Eventually(has_ended));
  EXPECT_TRUE(limits_->Open("ann").ok()) << "its place is free";
  v1::JobEvent event;
  while (reader->Read(&event)) {
  }
  EXPECT_THAT(reader->Finish().error_code(), AnyOf(StatusCode::CANCELLED, StatusCode::UNAUTHENTICATED));
}

}  // namespace
}  // namespace tandem
