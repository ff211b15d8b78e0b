// Jobs whose initial weights are the file of a URL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/mutex.h"
#include "server/admission/remote_data.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWeights[] = "https://example.com/model.safetensors";
constexpr char kTable[] = "https://example.com/table.csv";

// Returns a URL as the fake pins it.
std::string Pinned(const std::string& url) { return absl::StrCat(url, "#sha256=", std::string(64, 'a')); }

// Has all files at once, or answers with the error that the test sets.
class FakeRemote : public RemoteData {
 public:
  void EnsureUrls(std::vector<FieldUrl> urls, const std::string& user, absl::Duration,
                  UrlsDone done) override {
    std::vector<std::string> pinned;
    absl::Status error;
    {
      MutexLock lock(&mutex_);
      std::string asked = user;
      for (const FieldUrl& one : urls) {
        absl::StrAppend(&asked, " ", one.field);
        EXPECT_EQ(one.kind, PathKind::kFile);
        pinned.push_back(one.url.find('#') == std::string::npos ? Pinned(one.url) : one.url);
      }
      asked_.push_back(std::move(asked));
      error = error_;
    }
    if (!error.ok()) return done(error);
    done(std::move(pinned));
  }
  absl::StatusOr<std::string> LocalPath(const std::string&, PathKind) const override { return "/nowhere"; }
  void FetchPublicSet(const std::string&, const std::string&, absl::Duration,
                      absl::AnyInvocable<void(absl::Status)> done) override {
    done(absl::OkStatus());
  }

  void Fail(absl::Status error) {
    MutexLock lock(&mutex_);
    error_ = std::move(error);
  }
  // Returns the calls since the last call: the user and the fields.
  std::vector<std::string> TakeAsked() {
    MutexLock lock(&mutex_);
    return std::exchange(asked_, {});
  }

 private:
  Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ ABSL_GUARDED_BY(mutex_);
};

class WeightsByUrlTest : public ServiceFixture {
 protected:
  WeightsByUrlTest() { remote_ = &web_; }

  static v1::CreateJobRequest RequestFrom(const std::string& url) {
    v1::CreateJobRequest request = Request("next");
    request.mutable_spec()->mutable_initial_weights()->set_file(url);
    return request;
  }
  grpc::Status Submit(const v1::CreateJobRequest& request, v1::Job* job, const std::string& token = kToken) {
    return stub_->CreateJob(Context(token).get(), request, job);
  }
  // Returns the name of a job from kWeights that failed before a checkpoint.
  std::string FailedJob() {
    v1::Job job;
    EXPECT_TRUE(Submit(RequestFrom(kWeights), &job).ok());
    workers_.AwaitStarted(Id(job.name()));
    Report(job.name(), {Started(1)});
    Finish(job.name(), 2, v1::JOB_STATE_FAILED);
    web_.TakeAsked();
    return job.name();
  }
  grpc::Status Resume(const std::string& job) {
    v1::Job resumed;
    return stub_->ResumeJob(Context().get(), Named<v1::ResumeJobRequest>(job), &resumed);
  }
  static v1::CreateSweepRequest SweepOver(const std::string& field, const std::vector<std::string>& values) {
    v1::CreateSweepRequest request;
    *request.mutable_sweep()->mutable_base() = RequestFrom(kWeights).spec();
    v1::SweepGridField& axis = *request.mutable_sweep()->add_grid();
    axis.set_field(field);
    for (const std::string& value : values) axis.add_values()->set_string_value(value);
    return request;
  }
  std::string WeightsOf(const std::string& job) {
    v1::Job found;
    EXPECT_TRUE(stub_->GetJob(Context().get(), Named<v1::GetJobRequest>(job), &found).ok());
    return found.spec().initial_weights().file();
  }

  FakeRemote web_;
};

TEST_F(WeightsByUrlTest, AreFetchedAndPinned) {
  v1::Job job;
  v1::CreateJobRequest request = RequestFrom(kWeights);
  request.mutable_spec()->mutable_initial_weights()->add_except_layers("fc");
  request.set_validate_only(true);
  ASSERT_TRUE(Submit(request, &job).ok());
  EXPECT_EQ(job.spec().initial_weights().file(), Pinned(kWeights));
  request.set_validate_only(false);
  const grpc::Status created = Submit(request, &job);
  ASSERT_TRUE(created.ok()) << created.error_message();
  EXPECT_EQ(job.spec().initial_weights().file(), Pinned(kWeights));
  EXPECT_THAT(job.spec().initial_weights().except_layers(), ElementsAre("fc"));
  EXPECT_EQ(WeightsOf(job.name()), Pinned(kWeights));
  EXPECT_THAT(web_.TakeAsked(),
              ElementsAre("admin spec.initial_weights.file", "admin spec.initial_weights.file"));
}

// Older content in the cache may not fit a job.
TEST_F(WeightsByUrlTest, OnlyFetchedContentIsChecked) {
  v1::CreateJobRequest request = RequestFrom(kWeights);
  request.mutable_spec()->mutable_dataset()->mutable_csv()->set_train(kTable);
  request.mutable_spec()->set_name("newest");
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(WeightsByUrlTest, AreFetchedTogetherWithTheData) {
  v1::CreateJobRequest request = RequestFrom(kWeights);
  request.mutable_spec()->mutable_dataset()->mutable_csv()->set_train(kTable);
  v1::Job job;
  ASSERT_TRUE(Submit(request, &job).ok());
  EXPECT_EQ(job.spec().dataset().csv().train(), Pinned(kTable));
  EXPECT_EQ(job.spec().initial_weights().file(), Pinned(kWeights));
  EXPECT_THAT(web_.TakeAsked(), ElementsAre("admin spec.dataset.csv.train spec.initial_weights.file"));
  // A path is not fetched.
  request.mutable_spec()->mutable_initial_weights()->set_file("model.safetensors");
  ASSERT_TRUE(Submit(request, &job).ok());
  EXPECT_EQ(job.spec().dataset().csv().train(), Pinned(kTable));
  EXPECT_EQ(job.spec().initial_weights().file(), "model.safetensors");
  EXPECT_THAT(web_.TakeAsked(), ElementsAre("admin spec.dataset.csv.train"));
}

TEST_F(WeightsByUrlTest, ARepeatedRequestIsTheSameJob) {
  v1::CreateJobRequest request = RequestFrom(kWeights);
  request.set_request_id("again");
  v1::Job first, second;
  ASSERT_TRUE(Submit(request, &first).ok());
  web_.Fail(absl::UnavailableError("nobody there"));
  ASSERT_TRUE(Submit(request, &second).ok());
  EXPECT_EQ(first.name(), second.name());
}

TEST_F(WeightsByUrlTest, ErrorsAreThoseOfTheFetch) {
  v1::Job job;
  web_.Fail(DataBeingFetched({.bytes_done = 3, .bytes_total = 7}));
  grpc::Status status = Submit(RequestFrom(kWeights), &job);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_details(), HasSubstr("DATA_BEING_FETCHED"));
  web_.Fail(WithReason(FieldError("spec.initial_weights.file", "is not there"), "FETCH_FAILED"));
  status = Submit(RequestFrom(kWeights), &job);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_details(), HasSubstr("FETCH_FAILED"));
  EXPECT_THAT(status.error_message(), HasSubstr("spec.initial_weights.file: is not there"));
  v1::Sweep sweep;
  status = sweep_stub_->CreateSweep(Context().get(), SweepOver("name", {"a", "b"}), &sweep);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("sweep.base.initial_weights.file"));
  EXPECT_THAT(status.error_details(), HasSubstr("FETCH_FAILED"));
  web_.TakeAsked();
  // Everything else is checked before the fetch.
  v1::CreateJobRequest nameless = RequestFrom(kWeights);
  nameless.mutable_spec()->clear_name();
  status = Submit(nameless, &job);
  EXPECT_THAT(status.error_message(), HasSubstr("spec.name"));
  EXPECT_THAT(web_.TakeAsked(), IsEmpty());
}

TEST_F(WeightsByUrlTest, AViewerHasNothingFetched) {
  const std::string viewer = MakeToken("eve", v1::TOKEN_ROLE_VIEWER);
  v1::Job job;
  v1::CreateJobRequest request = RequestFrom(kWeights);
  for (const bool validate_only : {false, true}) {
    request.set_validate_only(validate_only);
    EXPECT_EQ(Submit(request, &job, viewer).error_code(), StatusCode::PERMISSION_DENIED);
  }
  EXPECT_THAT(web_.TakeAsked(), IsEmpty());
}

TEST_F(WeightsByUrlTest, EachJobOfASweepHasThem) {
  v1::Sweep sweep;
  grpc::Status created = sweep_stub_->CreateSweep(Context().get(), SweepOver("name", {"a", "b"}), &sweep);
  ASSERT_TRUE(created.ok()) << created.error_message();
  ASSERT_EQ(sweep.results_size(), 2);
  for (const v1::SweepResult& result : sweep.results()) EXPECT_EQ(WeightsOf(result.job()), Pinned(kWeights));
  EXPECT_THAT(web_.TakeAsked(), ElementsAre("admin spec.initial_weights.file"));
  // Each job has weights of its own.
  const std::string other = "https://example.com/other.safetensors";
  created = sweep_stub_->CreateSweep(
      Context().get(), SweepOver("initial_weights.file", {kWeights, other, kWeights + std::string("?v=2")}),
      &sweep);
  ASSERT_TRUE(created.ok()) << created.error_message();
  ASSERT_EQ(sweep.results_size(), 3);
  EXPECT_EQ(WeightsOf(sweep.results(0).job()), Pinned(kWeights));
  EXPECT_EQ(WeightsOf(sweep.results(1).job()), Pinned(other));
  EXPECT_EQ(web_.TakeAsked().size(), 3);
  // The same weights are fetched once, whatever layers are loaded.
  created = sweep_stub_->CreateSweep(
      Context().get(), SweepOver("initial_weights.file", {kWeights, "model.safetensors", Pinned(other)}),
      &sweep);
  ASSERT_TRUE(created.ok()) << created.error_message();
  EXPECT_EQ(WeightsOf(sweep.results(1).job()), "model.safetensors");
  EXPECT_EQ(web_.TakeAsked().size(), 2);
}

TEST_F(WeightsByUrlTest, AreFetchedAgainOnlyIfTheResumedJobReadsThem) {
  const std::string job = FailedJob();
  web_.Fail(WithReason(FieldError("spec.initial_weights.file", "is not there"), "FETCH_FAILED"));
  const grpc::Status refused = Resume(job);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_details(), HasSubstr("FETCH_FAILED"));
  EXPECT_THAT(web_.TakeAsked(), ElementsAre("admin spec.initial_weights.file"));
  EXPECT_EQ(jobs_->Get(Id(job))->state(), v1::JOB_STATE_FAILED);
  // A checkpoint replaces the weights.
  AppendFile(job, "checkpoint-20.safetensors", "state");
  const grpc::Status resumed = Resume(job);
  EXPECT_TRUE(resumed.ok()) << resumed.error_message();
  EXPECT_THAT(web_.TakeAsked(), IsEmpty());
}

TEST_F(WeightsByUrlTest, AResumedJobHasTheContentOfItsSubmission) {
  const std::string job = FailedJob();
  const grpc::Status resumed = Resume(job);
  ASSERT_TRUE(resumed.ok()) << resumed.error_message();
  EXPECT_THAT(web_.TakeAsked(), ElementsAre("admin spec.initial_weights.file"));
  EXPECT_EQ(WeightsOf(job), Pinned(kWeights));
}

}  // namespace
}  // namespace tandem
