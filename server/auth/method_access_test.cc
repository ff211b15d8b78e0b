#include "server/auth/method_access.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/dataset_service.pb.h"
#include "tandem/v1/job_service.pb.h"
#include "tandem/v1/model_service.pb.h"
#include "tandem/v1/sweep_service.pb.h"

namespace tandem {
namespace {

// The files that declare services. A new file fails the first test.
std::vector<const google::protobuf::FileDescriptor*> ServiceFiles() {
  return {v1::GetJobRequest::descriptor()->file(), v1::PredictRequest::descriptor()->file(),
          v1::CreateDatasetRequest::descriptor()->file(), v1::GetSweepRequest::descriptor()->file(),
          v1::GetDaemonRequest::descriptor()->file()};
}

std::set<std::pair<std::string, std::string>> PublicMethods() {
  std::set<std::pair<std::string, std::string>> methods;
  for (const google::protobuf::FileDescriptor* file : ServiceFiles()) {
    for (int i = 0; i < file->service_count(); ++i) {
      const google::protobuf::ServiceDescriptor* const service = file->service(i);
      for (int k = 0; k < service->method_count(); ++k) {
        methods.emplace(service->full_name(), service->method(k)->name());
      }
    }
  }
  return methods;
}

TEST(MethodAccess, KnowsEveryFileWithAService) {
  std::set<std::string> known;
  for (const google::protobuf::FileDescriptor* file : ServiceFiles()) known.insert(file->name());
  std::set<std::string> there;
  const std::string sources = getenv("TEST_SRCDIR");
  for (const auto& entry : std::filesystem::directory_iterator(sources + "/tandem/proto/tandem/v1")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.substr(0, 8) == "service ") there.insert("tandem/v1/" + entry.path().filename().string());
    }
  }
  EXPECT_EQ(known, there);
}

TEST(MethodAccess, TheTableHasEveryMethodOnceAndNoOther) {
  const std::set<std::pair<std::string, std::string>> methods = PublicMethods();
  ASSERT_GT(methods.size(), 40);
  std::set<std::pair<std::string, std::string>> listed;
  std::set<absl::string_view> names;
  for (const MethodAccess& access : MethodAccessTable()) {
    EXPECT_TRUE(listed.emplace(std::string(access.service), std::string(access.method)).second)
        << access.method;
    // Look-ups use the method's name alone.
    EXPECT_TRUE(names.insert(access.method).second) << access.method;
    EXPECT_EQ(FindMethodAccess(access.method), &access);
    EXPECT_GE(access.least_role, v1::TOKEN_ROLE_VIEWER) << access.method;
  }
  EXPECT_EQ(listed, methods);
}

TEST(MethodAccess, WhatChangesSomethingIsNotForViewers) {
  for (const MethodAccess& access : MethodAccessTable()) {
    const bool reads_by_name =
        access.method.substr(0, 3) == "Get" || access.method.substr(0, 4) == "List" ||
        access.method.substr(0, 5) == "Watch" || access.method.substr(0, 4) == "Read" ||
        access.method == "DescribeModel" || access.method == "ParseJob" || access.method == "ParseSweep" ||
        access.method == "Predict" || access.method == "Evaluate" || access.method == "ExportModel";
    EXPECT_EQ(access.changes, !reads_by_name) << access.method;
    if (access.changes) {
      EXPECT_GT(access.least_role, v1::TOKEN_ROLE_VIEWER) << access.method;
    }
  }
}

TEST(MethodAccess, RolesAreChecked) {
  const Caller viewer = {"vic", v1::TOKEN_ROLE_VIEWER, 1};
  const Caller submitter = {"ann", v1::TOKEN_ROLE_SUBMITTER, 2};
  const Caller admin = {"admin", v1::TOKEN_ROLE_ADMIN, 0};
  EXPECT_TRUE(CheckRole(viewer, "WatchJob").ok());
  const absl::Status refused = CheckRole(viewer, "CreateJob");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(refused.message().find("as \"vic\": it needs the role submitter, and the token has viewer"),
            absl::string_view::npos)
      << refused;
  for (const char* const running : {"Predict", "Evaluate", "CreateToken", "ListTokens"}) {
    EXPECT_FALSE(CheckRole(viewer, running).ok()) << running;
  }
  EXPECT_TRUE(CheckRole(submitter, "CreateJob").ok());
  EXPECT_FALSE(CheckRole(submitter, "ListTokens").ok());
  EXPECT_TRUE(CheckRole(admin, "Shutdown").ok());
  // A method without an entry.
  EXPECT_FALSE(CheckRole(submitter, "FormatDisk").ok());
  EXPECT_TRUE(CheckRole(admin, "FormatDisk").ok());
}

TEST(MethodAccess, RolesHaveNames) {
  EXPECT_EQ(RoleName(v1::TOKEN_ROLE_VIEWER), "viewer");
  EXPECT_EQ(RoleName(v1::TOKEN_ROLE_SUBMITTER), "submitter");
  EXPECT_EQ(RoleName(v1::TOKEN_ROLE_ADMIN), "admin");
  // A token of a newer daemon may have a role that this daemon does not know. The role allows nothing.
  const Caller stranger = {"sam", static_cast<v1::TokenRole>(0), 3};
  const absl::Status refused = CheckRole(stranger, "GetJob");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(refused.message().find("it needs the role viewer, and the token has none"),
            absl::string_view::npos)
      << refused;
}

}  // namespace
}  // namespace tandem
