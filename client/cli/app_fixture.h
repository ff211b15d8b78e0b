#ifndef TANDEM_CLIENT_CLI_APP_FIXTURE_H_
#define TANDEM_CLIENT_CLI_APP_FIXTURE_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/fake_terminal.h"
#include "client/lib/fake_daemon.h"
#include "gtest/gtest.h"

namespace tandem::cli {

// A fixture for tests of the program's commands: a test's folder, daemon and terminal.
class AppFixture : public ::testing::Test {
 protected:
  AppFixture() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-app-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    terminal_.environment["XDG_STATE_HOME"] = folder_;
    terminal_.environment["TANDEM_ADDRESS"] = daemon_.address();
    daemon_.get_job = [](const v1::GetJobRequest& request, v1::Job* job) -> grpc::Status {
      if (request.name() != "jobs/lenet-1") return {grpc::StatusCode::NOT_FOUND, "no job " + request.name()};
      *job = Job("jobs/lenet-1", v1::JOB_STATE_SUCCEEDED);
      return grpc::Status::OK;
    };
    daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
      *response->add_jobs() = Job("jobs/lenet-1", v1::JOB_STATE_SUCCEEDED);
      *response->add_jobs() = Job("jobs/mlp-1a", v1::JOB_STATE_RUNNING);
      (*response->mutable_jobs(1)->mutable_last_epoch()->mutable_validation()->mutable_metrics())["mae"] =
          0.25;
      *response->add_jobs() = Job("jobs/mlp-1b", v1::JOB_STATE_QUEUED);
      return grpc::Status::OK;
    };
  }
  ~AppFixture() override { std::filesystem::remove_all(folder_); }

  static v1::Job Job(const std::string& name, v1::JobState state) {
    v1::Job job;
    job.set_name(name);
    job.set_state(state);
    job.set_user("ann");
    job.mutable_spec()->set_name("lenet");
    job.mutable_spec()->mutable_training()->set_epochs(3);
    job.mutable_create_time()->set_seconds(1'000'000 - 90);
    return job;
  }

  int Run(const std::vector<std::string>& arguments) { return RunCommand(arguments, terminal_); }
  // Runs a command on a new terminal, which then has only the output of this command.
  int RunAnew(const std::vector<std::string>& arguments) {
    FakeTerminal fresh;
    fresh.environment = terminal_.environment;
    terminal_ = fresh;
    return Run(arguments);
  }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }

  static std::string Read(const std::string& path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
  }

  // Makes the daemon accept any job and stream a job that ends in the state `end`.
  void TellOf(v1::JobState end) {
    daemon_.create_job = [](const v1::CreateJobRequest& request, v1::Job* job) -> grpc::Status {
      if (request.request_id().empty()) return {grpc::StatusCode::INVALID_ARGUMENT, "no request id"};
      *job = Job("jobs/lenet-1", v1::JOB_STATE_QUEUED);
      return grpc::Status::OK;
    };
    daemon_.watch_job = [end](const v1::WatchJobRequest& request, grpc::ServerContext*,
                              grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
      for (int64_t sequence = request.after_sequence() + 1; sequence <= 3; ++sequence) {
        v1::JobEvent event;
        event.set_job("jobs/lenet-1");
        event.set_sequence(sequence);
        event.set_terminal(sequence == 3);
        event.mutable_state_change()->set_to(sequence == 3 ? end : v1::JOB_STATE_RUNNING);
        writer->Write(event);
        // The stream breaks once.
        if (sequence == 2 && request.after_sequence() == 0) return {grpc::StatusCode::UNAVAILABLE, "going"};
      }
      return grpc::Status::OK;
    };
  }

  std::string folder_;
  client::FakeDaemon daemon_;
  FakeTerminal terminal_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_APP_FIXTURE_H_
