#include "client/dashboard/calls.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "client/lib/fake_daemon.h"

namespace tandem::dashboard {
namespace {

using nlohmann::json;

class CallsTest : public testing::Test {
 protected:
  client::FakeDaemon daemon_;
  std::unique_ptr<client::Client> client_ = daemon_.Connect();
};

TEST_F(CallsTest, AnswersInTheApisNames) {
  daemon_.get_job = [](const v1::GetJobRequest& request, v1::Job* job) {
    job->set_name(request.name());
    job->set_last_sequence(7);
    job->set_state(v1::JOB_STATE_RUNNING);
    return grpc::Status::OK;
  };
  const absl::StatusOr<std::string> answer = CallInJson(*client_, "GetJob", R"({"name": "jobs/x"})");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(json::parse(*answer),
            json({{"name", "jobs/x"}, {"last_sequence", "7"}, {"state", "JOB_STATE_RUNNING"}}));
}

TEST_F(CallsTest, ListsAreWhole) {
  daemon_.list_sweeps = [](const v1::ListSweepsRequest& request, v1::ListSweepsResponse* response) {
    response->add_sweeps()->set_name(request.page_token().empty() ? "sweeps/b" : "sweeps/a");
    if (request.page_token().empty()) response->set_next_page_token("next");
    return grpc::Status::OK;
  };
  const absl::StatusOr<std::string> answer = CallInJson(*client_, "ListSweeps", "{}");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(json::parse(*answer)["sweeps"].size(), 2);
}

TEST_F(CallsTest, DevicesComeWithPartitions) {
  daemon_.list_devices = [](v1::ListDevicesResponse* response) {
    response->add_devices()->set_name("devices/cpu:0");
    response->add_partitions()->set_name("work");
    response->set_partitions_message("busy");
    return grpc::Status::OK;
  };
  const absl::StatusOr<std::string> answer = CallInJson(*client_, "ListDevices", "{}");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(json::parse(*answer), json({{"devices", {{{"name", "devices/cpu:0"}}}},
                                        {"partitions", {{{"name", "work"}}}},
                                        {"partitions_message", "busy"}}));
}

TEST_F(CallsTest, AHistoryHasTheEventsOfAllPages) {
  daemon_.get_job_history = [](const v1::GetJobHistoryRequest& request, v1::GetJobHistoryResponse* response) {
    EXPECT_EQ(request.last_step(), 7);
    response->set_last_sequence(9);
    const bool is_first = request.page_token().empty();
    if (is_first) response->add_curves()->set_name("training/loss");
    response->add_events()->set_sequence(is_first ? 1 : 2);
    response->add_event_steps(is_first ? 0 : 5);
    if (is_first) response->set_next_page_token("next");
    return grpc::Status::OK;
  };
  const absl::StatusOr<std::string> answer =
      CallInJson(*client_, "GetJobHistory", R"({"name": "jobs/x", "last_step": 7})");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(json::parse(*answer), json({{"last_sequence", "9"},
                                        {"curves", {{{"name", "training/loss"}}}},
                                        {"events", {{{"sequence", "1"}}, {{"sequence", "2"}}}},
                                        {"event_steps", {"0", "5"}}}));
}

TEST_F(CallsTest, OtherCallsAndOtherTextsAreRefused) {
  for (const char* const method : {"Shutdown", "CreateToken", "DeleteJob", "", "GetJob/"})
    EXPECT_EQ(CallInJson(*client_, method, "{}").status().code(), absl::StatusCode::kNotFound) << method;
  for (const char* const text : {"[", "{\"no_field\": 1}", "{\"name\": {}}"})
    EXPECT_EQ(CallInJson(*client_, "GetJob", text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
}

TEST_F(CallsTest, ErrorsKeepCodeAndMessage) {
  daemon_.cancel_job = [](const v1::CancelJobRequest&, v1::Job*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the job has \"ended\"\n");
  };
  const absl::Status status = CallInJson(*client_, "CancelJob", R"({"name": "jobs/x"})").status();
  EXPECT_EQ(json::parse(ErrorInJson(status)),
            json({{"code", "FAILED_PRECONDITION"}, {"message", "the job has \"ended\"\n"}}));
  EXPECT_EQ(HttpStatus(status), 409);
  EXPECT_EQ(HttpStatus(absl::OkStatus()), 200);
  EXPECT_EQ(HttpStatus(absl::PermissionDeniedError("")), 403);
  EXPECT_EQ(HttpStatus(absl::DataLossError("")), 500);
}

}  // namespace
}  // namespace tandem::dashboard
