#include "client/dashboard/job_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/lib/fake_daemon.h"

namespace tandem::dashboard {
namespace {

using nlohmann::json;

class JobListTest : public testing::Test {
 protected:
  JobListTest() {
    daemon_.list_jobs = [this](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
      absl::MutexLock lock(&mutex_);
      if (!error_.ok()) return error_;
      for (const auto& [name, job] : jobs_) *response->add_jobs() = job;
      return grpc::Status::OK;
    };
    daemon_.get_job = [this](const v1::GetJobRequest& request, v1::Job* job) {
      absl::MutexLock lock(&mutex_);
      const auto found = jobs_.find(request.name());
      if (found == jobs_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "gone");
      *job = found->second;
      return grpc::Status::OK;
    };
    daemon_.watch_jobs = [this](const v1::WatchJobsRequest&, grpc::ServerContext* context,
                                grpc::ServerWriter<v1::WatchJobsResponse>* writer) {
      while (!context->IsCancelled()) {
        std::set<std::string> heard;
        {
          absl::MutexLock lock(&mutex_);
          heard.swap(changed_);
        }
        for (const std::string& name : heard) {
          v1::WatchJobsResponse change;
          change.set_job(name);
          writer->Write(change);
        }
        absl::SleepFor(absl::Milliseconds(10));
      }
      return grpc::Status::OK;
    };
  }

  void Put(const std::string& name, v1::JobState state, int64_t step = 0, double loss = 0) {
    absl::MutexLock lock(&mutex_);
    v1::Job& job = jobs_[name];
    job.set_name(name);
    job.set_state(state);
    if (step > 0) job.mutable_progress()->set_step(step);
    if (step > 0) job.mutable_progress()->mutable_training()->set_loss(loss);
    changed_.insert(name);
  }

  // Takes in changes until the rows are so; at most some seconds.
  bool Await(JobList::View& view, const std::map<std::string, std::string>& states) {
    for (int i = 0; i < 100; ++i) {
      const JobList::Changes changes = view.Await(version_, absl::Milliseconds(100));
      version_ = changes.version;
      connection_ = changes.connection;
      for (const std::string& row : changes.rows) rows_[json::parse(row)["name"]] = json::parse(row)["state"];
      for (const std::string& name : changes.deleted) rows_.erase(name);
      if (rows_ == states) return true;
    }
    return false;
  }

  absl::Mutex mutex_;
  std::map<std::string, v1::Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> changed_ ABSL_GUARDED_BY(mutex_);
  grpc::Status error_ ABSL_GUARDED_BY(mutex_);
  client::FakeDaemon daemon_;
  std::unique_ptr<client::Client> client_ = daemon_.Connect();
  JobList list_{client_.get()};
  int64_t version_ = -1;
  std::map<std::string, std::string> rows_;
  absl::Status connection_;
};

TEST_F(JobListTest, FollowsAllJobs) {
  Put("jobs/a", v1::JOB_STATE_RUNNING, 1);
  Put("jobs/b", v1::JOB_STATE_QUEUED);
  JobList::View view(&list_);
  EXPECT_TRUE(Await(view, {{"jobs/a", "RUNNING"}, {"jobs/b", "QUEUED"}}));
  EXPECT_TRUE(connection_.ok()) << connection_;
  Put("jobs/b", v1::JOB_STATE_SUCCEEDED);
  Put("jobs/c", v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(Await(view, {{"jobs/a", "RUNNING"}, {"jobs/b", "SUCCEEDED"}, {"jobs/c", "QUEUED"}}));
  {
    absl::MutexLock lock(&mutex_);
    jobs_.erase("jobs/b");
  }
  EXPECT_TRUE(Await(view, {{"jobs/a", "RUNNING"}, {"jobs/c", "QUEUED"}}));
}

TEST_F(JobListTest, AViewThatComesLaterHasAll) {
  Put("jobs/a", v1::JOB_STATE_SUCCEEDED);
  JobList::View first(&list_);
  EXPECT_TRUE(Await(first, {{"jobs/a", "SUCCEEDED"}}));
  JobList::View second(&list_);
  const JobList::Changes changes = second.Await(-1, absl::Seconds(10));
  ASSERT_EQ(changes.rows.size(), 1);
  // And nothing again.
  EXPECT_EQ(second.Await(changes.version, absl::Milliseconds(50)).rows.size(), 0);
}

TEST_F(JobListTest, TheLossesOfAnAttemptFromAnEarlierStepAreShown) {
  JobList::View view(&list_);
  // Step and loss of each report. The second attempt begins at step 10.
  for (const auto& [step, loss] : std::vector<std::pair<int64_t, double>>{{20, 2}, {30, 1}, {15, 3}}) {
    Put("jobs/a", v1::JOB_STATE_RUNNING, step, loss);
    json newest;
    for (int i = 0; i < 1000 && (newest.empty() || newest.back() != loss); ++i) {
      const JobList::Changes changes = view.Await(version_, absl::Milliseconds(100));
      version_ = changes.version;
      for (const std::string& row : changes.rows) newest = json::parse(row)["spark"];
    }
    ASSERT_FALSE(newest.empty());
    EXPECT_EQ(newest.back(), loss) << "step " << step;
  }
}

TEST_F(JobListTest, IsFollowedAgainByALaterView) {
  Put("jobs/a", v1::JOB_STATE_RUNNING);
  {
    JobList::View view(&list_);
    EXPECT_TRUE(Await(view, {{"jobs/a", "RUNNING"}}));
  }
  Put("jobs/a", v1::JOB_STATE_FAILED);
  JobList::View view(&list_);
  EXPECT_TRUE(Await(view, {{"jobs/a", "FAILED"}}));
}

TEST_F(JobListTest, SaysThatTheDaemonRefuses) {
  {
    absl::MutexLock lock(&mutex_);
    error_ = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the token was revoked");
  }
  JobList::View view(&list_);
  for (int i = 0; i < 1000 && !absl::IsUnauthenticated(connection_); ++i)
    connection_ = view.Await(-1, absl::Milliseconds(50)).connection;
  EXPECT_TRUE(absl::IsUnauthenticated(connection_)) << connection_;
}

}  // namespace
}  // namespace tandem::dashboard
