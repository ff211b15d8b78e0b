#include "server/auth/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/base/faulty_env.h"
#include "server/store/eventually.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

AuditRecord Call(const std::string& user, const std::string& resource) {
  AuditRecord record;
  record.event = "call";
  record.user = user;
  record.peer = "ipv4:10.0.0.7:51234";
  record.method = "CancelJob";
  record.resource = resource;
  record.code = "OK";
  return record;
}

class AuditLogTest : public ::testing::Test {
 protected:
  void Open(AuditLog::Options options = {}) {
    log_ = nullptr;
    options.folder = "/state";
    options.retry_interval = absl::Milliseconds(10);
    auto log = AuditLog::Open(options, &env_, &clock_);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  // Returns every line of a file. Each line must be JSON.
  std::vector<json> Lines(const std::string& file = "audit.log") {
    const absl::StatusOr<std::string> content = env_.ReadFile("/state/" + file);
    std::vector<json> lines;
    if (!content.ok()) return lines;
    for (const absl::string_view line : absl::StrSplit(*content, '\n', absl::SkipEmpty())) {
      json parsed = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
      if (parsed.is_discarded()) {
        ++broken_;
      } else {
        lines.push_back(std::move(parsed));
      }
    }
    return lines;
  }
  std::vector<std::string> Resources(const std::string& file = "audit.log") {
    std::vector<std::string> resources;
    for (const json& line : Lines(file)) resources.push_back(line.value("resource", line.value("event", "")));
    return resources;
  }

  template <typename Condition>
  void Await(Condition condition) {
    EXPECT_TRUE(Eventually(condition, absl::Seconds(30)));
  }

  FaultyEnv env_;
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  std::unique_ptr<AuditLog> log_;
  int broken_ = 0;
};

TEST_F(AuditLogTest, ARecordIsALineOfJson) {
  Open();
  log_->Add(Call("ann", "jobs/a\"\n\xff"));
  log_->Close();
  const std::vector<json> lines = Lines();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0]["time"], "2027-01-15T08:00:00.000000Z");
  EXPECT_EQ(lines[0]["user"], "ann");
  EXPECT_EQ(lines[0]["peer"], "ipv4:10.0.0.7:51234");
  EXPECT_EQ(lines[0]["method"], "CancelJob");
  EXPECT_EQ(lines[0]["resource"], "jobs/a\"\n\xef\xbf\xbd");
  EXPECT_FALSE(lines[0].contains("reason"));
  // After Close, records are dropped.
  log_->Add(Call("ann", "late"));
  EXPECT_EQ(Lines().size(), 1);
}

TEST_F(AuditLogTest, GoesOnWhereTheLastDaemonStopped) {
  Open();
  log_->Add(Call("ann", "a"));
  Open();
  log_->Add(Call("ann", "b"));
  log_->Close();
  EXPECT_THAT(Resources(), ElementsAre("a", "b"));
}

TEST_F(AuditLogTest, WhatIsWrittenOutlivesAPowerCut) {
  Open();
  log_->Add(Call("ann", "a"));
  log_->Close();
  env_.CutPower();
  EXPECT_THAT(Resources(), ElementsAre("a"));
}

TEST_F(AuditLogTest, ALineCutOffByACrashSpoilsNoOther) {
  {
    auto file = env_.CreateFile("/state/audit.log");
    ASSERT_TRUE(file.ok() && (*file)->Append("{\"time\":\"2026-").ok());
  }
  Open();
  log_->Add(Call("ann", "a"));
  log_->Close();
  EXPECT_THAT(Resources(), ElementsAre("a"));
  EXPECT_EQ(broken_, 1);
}

TEST_F(AuditLogTest, RotatesBySizeAndKeepsSoMany) {
  const int64_t line = static_cast<int64_t>(Call("ann", "00").ToLine().size());
  // Two lines per file. A record without a time gets a line of the same length.
  Open({.most_bytes = 2 * line + line / 2, .kept = 2});
  for (int i = 10; i < 20; ++i) log_->Add(Call("ann", absl::StrCat(i)));
  log_->Close();
  EXPECT_THAT(Resources("audit.log"), ElementsAre("18", "19"));
  EXPECT_THAT(Resources("audit.log.1"), ElementsAre("16", "17"));
  EXPECT_THAT(Resources("audit.log.2"), ElementsAre("14", "15"));
  EXPECT_FALSE(env_.ReadFile("/state/audit.log.3").ok());
}

TEST_F(AuditLogTest, OnAFullDiskRecordsWaitAndAreAllThereLater) {
  Open();
  env_.FailAfter(0);
  for (int i = 0; i < 5; ++i) log_->Add(Call("ann", absl::StrCat(i)));
  Await([this] { return log_->state().failing; });
  EXPECT_EQ(log_->state().waiting, 5);
  env_.FailAfter(1 << 20);
  Await([this] { return !log_->state().failing && log_->state().waiting == 0; });
  log_->Close();
  EXPECT_THAT(Resources(), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_EQ(log_->state().lost, 0);
  EXPECT_EQ(broken_, 0);
}

TEST_F(AuditLogTest, WhereTooManyWaitTheLostOnesAreCountedAndTold) {
  Open({.most_waiting = 3});
  env_.FailAfter(0);
  for (int i = 0; i < 10; ++i) log_->Add(Call("ann", absl::StrCat(i)));
  Await([this] { return log_->state().failing; });
  EXPECT_EQ(log_->state().lost, 7);
  env_.FailAfter(1 << 20);
  Await([this] { return !log_->state().failing && log_->state().waiting == 0; });
  log_->Close();
  EXPECT_THAT(Resources(), ElementsAre("0", "1", "2", "lost"));
  EXPECT_EQ(Lines().back()["count"], 7);
}

TEST_F(AuditLogTest, EveryPointOfFailureKeepsOrderAndLosesNothing) {
  const int64_t line = static_cast<int64_t>(Call("ann", "00").ToLine().size());
  for (int allowed = 0; allowed < 40; ++allowed) {
    SCOPED_TRACE(allowed);
    FaultyEnv env;
    AuditLog::Options options;
    options.folder = "/state";
    options.retry_interval = absl::Milliseconds(1);
    options.most_bytes = 3 * line;
    options.kept = 9;
    auto log = AuditLog::Open(options, &env, &clock_);
    ASSERT_TRUE(log.ok());
    env.FailAfter(allowed);
    for (int i = 10; i < 20; ++i) (*log)->Add(Call("ann", absl::StrCat(i)));
    for (int i = 0; i < 2000 && (*log)->state().waiting > 0 && !(*log)->state().failing; ++i) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    env.FailAfter(1 << 20);
    for (int i = 0; i < 2000 && (*log)->state().waiting > 0; ++i) absl::SleepFor(absl::Milliseconds(1));
    (*log)->Close();
    std::vector<std::string> found;
    for (int number = 9; number >= 0; --number) {
      const auto content =
          env.ReadFile(number == 0 ? "/state/audit.log" : absl::StrCat("/state/audit.log.", number));
      if (!content.ok()) continue;
      for (const absl::string_view one : absl::StrSplit(*content, '\n', absl::SkipEmpty())) {
        const json parsed = json::parse(one.begin(), one.end(), nullptr, false);
        ASSERT_FALSE(parsed.is_discarded()) << one;
        found.push_back(parsed["resource"]);
      }
    }
    EXPECT_THAT(found, ElementsAre("10", "11", "12", "13", "14", "15", "16", "17", "18", "19"));
  }
}

TEST_F(AuditLogTest, AFloodOfRefusalsIsCountedNotWritten) {
  Open({.refused_at_once = 3, .refused_a_second = 1});
  int written = 0;
  for (int i = 0; i < 100; ++i) written += log_->AddRefused(Call("", "x")) ? 1 : 0;
  EXPECT_EQ(written, 3);
  // Neither another user's records nor successful calls are affected.
  EXPECT_TRUE(log_->AddRefused(Call("ann", "hers")));
  log_->Add(Call("bob", "his"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(log_->AddRefused(Call("", "y")));
  EXPECT_FALSE(log_->AddRefused(Call("", "z")));
  log_->Close();
  EXPECT_THAT(Resources(), ElementsAre("x", "x", "x", "hers", "his", "left_out", "y", "left_out"));
  EXPECT_EQ(Lines()[5]["count"], 97);
  EXPECT_EQ(Lines()[7]["count"], 1);
}

TEST(AuditLogFile, AFileThatCannotBeOpenedIsToldAtTheStart) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/audit.log");
  AuditLog::Options options;
  options.folder = folder.path();
  EXPECT_FALSE(AuditLog::Open(options, Env::Real(), Clock::Real()).ok());
}

}  // namespace
}  // namespace tandem
