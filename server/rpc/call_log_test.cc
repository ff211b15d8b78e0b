#include "server/rpc/call_log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

class CallLogTest : public testing::Test {
 protected:
  CallLogTest() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }

  void Call(const std::string& user, const absl::Status& status) {
    CallLog log("GetJob", "ipv4:127.0.0.1:1", &hooks_);
    log.SetUser(user);
    log.Finish(status);
  }
  std::vector<std::string> LinesOf(const std::string& user) {
    std::vector<std::string> lines = absl::StrSplit(text_.str(), '\n', absl::SkipEmpty());
    lines.erase(std::remove_if(
                    lines.begin(), lines.end(),
                    [&](const std::string& line) { return !absl::StrContains(line, "user=" + user + " "); }),
                lines.end());
    return lines;
  }

  const CallHooks hooks_;
  std::ostringstream text_;
};

TEST_F(CallLogTest, AFloodOfRefusedCallsLeavesFewLines) {
  for (int i = 0; i < 5000; ++i) Call("ann", absl::ResourceExhaustedError("too often"));
  const size_t lines = LinesOf("ann").size();
  EXPECT_GE(lines, 50);
  EXPECT_LT(lines, 100);
  // Other calls, and other users' refused calls, have their own lines.
  Call("ann", absl::OkStatus());
  EXPECT_EQ(LinesOf("ann").size(), lines + 1);
  Call("bob", absl::PermissionDeniedError("no"));
  EXPECT_EQ(LinesOf("bob").size(), 1);
}

}  // namespace
}  // namespace tandem
