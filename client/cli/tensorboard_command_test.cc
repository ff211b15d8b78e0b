#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/app_fixture.h"
#include "client/lib/tensorboard_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A daemon with two jobs and their logs.
class TensorBoardCommandTest : public AppFixture {
 protected:
  TensorBoardCommandTest() {
    jobs_["jobs/lenet-1"] = Job("jobs/lenet-1", v1::JOB_STATE_SUCCEEDED);
    jobs_["jobs/lenet-1"].mutable_end_time()->set_seconds(1'000'000);
    jobs_["jobs/lenet-1"].set_last_sequence(3);
    jobs_["jobs/mlp-1a"] = Job("jobs/mlp-1a", v1::JOB_STATE_RUNNING);
    jobs_["jobs/mlp-1a"].set_last_sequence(2);
    daemon_.get_job = [this](const v1::GetJobRequest& request, v1::Job* job) -> grpc::Status {
      const auto found = jobs_.find(request.name());
      if (found == jobs_.end()) return {grpc::StatusCode::NOT_FOUND, "no job " + request.name()};
      *job = found->second;
      return grpc::Status::OK;
    };
    daemon_.list_jobs = [this](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
      for (const auto& [name, job] : jobs_) *response->add_jobs() = job;
      return grpc::Status::OK;
    };
    daemon_.watch_job = [this](const v1::WatchJobRequest& request, grpc::ServerContext* context,
                               grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
      // A copy: the test changes jobs_ while a stream ends.
      const v1::Job job = jobs_[request.name()];
      for (int64_t sequence = request.after_sequence() + 1; sequence <= job.last_sequence(); ++sequence) {
        v1::JobEvent event;
        event.set_job(request.name());
        event.set_sequence(sequence);
        event.set_terminal(job.has_end_time() && sequence == job.last_sequence());
        if (event.terminal()) {
          event.mutable_state_change()->set_to(job.state());
        } else {
          event.mutable_progress()->set_step(sequence * 10);
          event.mutable_progress()->mutable_training()->set_loss(0.5);
        }
        writer->Write(event);
      }
      // The stream of a job that has not ended stays open.
      while (!job.has_end_time() && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
      return grpc::Status::OK;
    };
  }

  std::string FileOf(const std::string& id) const {
    return folder_ + "/tb/" + id + "/events.out.tfevents.999910.tandem";
  }

  std::map<std::string, v1::Job> jobs_;
};

TEST_F(TensorBoardCommandTest, CopiesEveryJobOnce) {
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "--once"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), FileOf("lenet-1") + "\n" + FileOf("mlp-1a") + "\n");
  EXPECT_THAT(Read(FileOf("lenet-1")), HasSubstr("training/loss"));
  const std::string copy = Read(FileOf("mlp-1a"));
  EXPECT_THAT(copy, HasSubstr("training/loss"));
  // Another run adds only new events.
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "--once"}), 0) << terminal_.err();
  EXPECT_EQ(Read(FileOf("mlp-1a")), copy);
  jobs_["jobs/mlp-1a"].set_last_sequence(3);
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "--once"}), 0) << terminal_.err();
  const std::string longer = Read(FileOf("mlp-1a"));
  EXPECT_GT(longer.size(), copy.size());
  EXPECT_EQ(longer.substr(0, copy.size()), copy);
}

TEST_F(TensorBoardCommandTest, TheFileOfARunningJobStaysOpenUntilItEnds) {
  int rounds = 0;
  std::vector<absl::Status> opened;
  std::string first;
  daemon_.get_job = [&](const v1::GetJobRequest&, v1::Job* job) -> grpc::Status {
    v1::Job& stored = jobs_["jobs/mlp-1a"];
    // The first question looks for the job.
    if (++rounds > 1) {
      opened.push_back(client::TensorBoardFile::Open(FileOf("mlp-1a"), stored, "").status());
      first = Read(FileOf("mlp-1a"));
      stored.set_state(v1::JOB_STATE_SUCCEEDED);
      stored.mutable_end_time()->set_seconds(1'000'000);
      stored.set_last_sequence(5);
    }
    *job = stored;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "mlp-1a"}), 0) << terminal_.err();
  // Another process would get this error.
  ASSERT_EQ(opened.size(), 1);
  EXPECT_TRUE(absl::IsAborted(opened[0])) << opened[0];
  const std::string whole = Read(FileOf("mlp-1a"));
  EXPECT_GT(whole.size(), first.size());
  EXPECT_EQ(whole.substr(0, first.size()), first);
  EXPECT_TRUE(client::TensorBoardFile::Open(FileOf("mlp-1a"), jobs_["jobs/mlp-1a"], "").ok());
}

TEST_F(TensorBoardCommandTest, ARemovedFileIsWrittenAgain) {
  int rounds = 0;
  std::string before;
  daemon_.get_job = [&](const v1::GetJobRequest&, v1::Job* job) -> grpc::Status {
    v1::Job& stored = jobs_["jobs/mlp-1a"];
    if (++rounds > 1) {
      before = Read(FileOf("mlp-1a"));
      std::filesystem::remove(FileOf("mlp-1a"));
      stored.set_state(v1::JOB_STATE_SUCCEEDED);
      stored.mutable_end_time()->set_seconds(1'000'000);
      stored.set_last_sequence(5);
    }
    *job = stored;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "mlp-1a"}), 0) << terminal_.err();
  const std::string whole = Read(FileOf("mlp-1a"));
  EXPECT_GT(before.size(), 0);
  EXPECT_GT(whole.size(), before.size());
}

TEST_F(TensorBoardCommandTest, NamedJobsAreCopiedUntilTheyEnd) {
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "lenet-1"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), FileOf("lenet-1") + "\n");
  EXPECT_FALSE(std::filesystem::exists(FileOf("mlp-1a")));
  EXPECT_NE(Run({"tensorboard", folder_ + "/tb", "none"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("none"));
}

TEST_F(TensorBoardCommandTest, CtrlCEndsIt) {
  terminal_.interrupt = [](const std::string& out) { return out.find("mlp-1a") != std::string::npos; };
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr(FileOf("mlp-1a")));
}

TEST_F(TensorBoardCommandTest, AFileThatCannotBeWrittenLeavesTheOthers) {
  Write("tb/lenet-1", "a file, not a folder");
  EXPECT_NE(Run({"tensorboard", folder_ + "/tb", "--once"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot create the folder " + folder_ + "/tb/lenet-1"));
  EXPECT_EQ(terminal_.out(), FileOf("mlp-1a") + "\n");
}

TEST_F(TensorBoardCommandTest, AFileOfALaterLogIsKept) {
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "--once"}), 0) << terminal_.err();
  const std::string copy = Read(FileOf("mlp-1a"));
  // The daemon was restored from a backup.
  jobs_["jobs/mlp-1a"].set_last_sequence(1);
  EXPECT_NE(Run({"tensorboard", folder_ + "/tb", "--once"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("the file has later events than the job"));
  EXPECT_EQ(Read(FileOf("mlp-1a")), copy);
}

TEST_F(TensorBoardCommandTest, AnIdThatLeadsOutOfTheFolderIsRefused) {
  v1::Job job = jobs_["jobs/mlp-1a"];
  jobs_.clear();
  job.set_name("jobs/../outside");
  jobs_[job.name()] = std::move(job);
  EXPECT_NE(Run({"tensorboard", folder_ + "/tb", "--once"}), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot create a folder for the job \"../outside\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/outside"));
}

TEST_F(TensorBoardCommandTest, ADaemonThatIsAwayIsToldOnce) {
  int calls = 0;
  daemon_.list_jobs = [&](const v1::ListJobsRequest&, v1::ListJobsResponse* response) -> grpc::Status {
    if (++calls == 1) return {grpc::StatusCode::UNAVAILABLE, "going"};
    *response->add_jobs() = jobs_["jobs/lenet-1"];
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"tensorboard", folder_ + "/tb", "--once"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot reach the daemon: "));
  EXPECT_THAT(terminal_.out(), HasSubstr(FileOf("lenet-1")));
  daemon_.list_jobs = nullptr;
  EXPECT_NE(Run({"tensorboard", folder_ + "/tb", "--once"}), 0);
}

TEST_F(TensorBoardCommandTest, DownloadCopiesOneJob) {
  EXPECT_EQ(Run({"download", "lenet-1", "--tensorboard", folder_ + "/tb"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), FileOf("lenet-1") + "\n");
  EXPECT_THAT(Read(FileOf("lenet-1")), HasSubstr("training/loss"));
  EXPECT_THAT(Read(FileOf("lenet-1")), Not(HasSubstr("validation/loss")));
}

}  // namespace
}  // namespace tandem::cli
