#include "client/cli/tls_file_checks.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/test_certificates.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A machine whose process 1234 is a daemon with TLS files.
class TlsFileChecksTest : public ::testing::Test {
 protected:
  TlsFileChecksTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-tls-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(root_ + "/proc/1234");
    std::filesystem::create_directory_symlink(root_, root_ + "/proc/1234/cwd");
    authority_.Issue("gpu-box", root_ + "/server.pem", root_ + "/server.key");
    authority_.Write(root_ + "/clients.pem");
    StartWith({"tandemd", "--listen", "0.0.0.0:7447", "--tls-cert", "server.pem", "--tls-key=server.key",
               "--tls-client-ca", root_ + "/clients.pem"});
  }
  ~TlsFileChecksTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(root_ + "/" + name) << content;
  }
  void StartWith(const std::vector<std::string>& words) {
    Write("proc/1234/cmdline",
          absl::StrCat(absl::StrJoin(words, std::string(1, '\0')), std::string(1, '\0')));
  }
  // Returns "level subject: message", or "" without findings. The certificate is valid for an hour.
  std::string Check(absl::Time now = absl::Now() - absl::Hours(24 * 30)) {
    const Findings findings = CheckTlsFiles(1234, root_, now, absl::UTCTimeZone());
    if (findings.empty()) return "";
    EXPECT_EQ(findings.size(), 1);
    EXPECT_EQ(findings[0].level == Finding::Level::kFine, findings[0].mend.empty());
    return absl::StrCat(findings[0].level == Finding::Level::kFine ? "ok " : "problem ", findings[0].subject,
                        ": ", findings[0].message);
  }

  TestAuthority authority_{"authority"};
  std::string root_;
};

TEST_F(TlsFileChecksTest, FilesThatCanBeUsed) {
  EXPECT_THAT(Check(), StartsWith("ok TLS files: can be used; the certificate is valid until "));
  StartWith({"tandemd", "--config", "tandemd.yaml"});
  Write("tandemd.yaml", "tls_cert: server.pem  # renewed monthly\ntls-key: \"server.key\"\n");
  EXPECT_THAT(Check(), StartsWith("ok TLS files: "));
}

TEST_F(TlsFileChecksTest, NoTlsAndProcessesThatCannotBeSeen) {
  StartWith({"tandemd", "--listen", "127.0.0.1:7447"});
  EXPECT_THAT(Check(), IsEmpty());
  std::filesystem::remove(root_ + "/proc/1234/cmdline");
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(TlsFileChecksTest, TheEndOfTheCertificate) {
  EXPECT_THAT(Check(absl::Now()),
              HasSubstr("problem TLS files: the certificate " + root_ + "/server.pem expires on"));
  EXPECT_THAT(Check(absl::Now() + absl::Hours(48)), HasSubstr("server.pem has expired on "));
}

TEST_F(TlsFileChecksTest, WhatTheDaemonCannotTake) {
  authority_.Issue("gpu-box", root_ + "/other.pem", root_ + "/other.key");
  std::filesystem::rename(root_ + "/other.key", root_ + "/server.key");
  EXPECT_THAT(Check(), HasSubstr("server.key is not the key of the certificate "));
  EXPECT_THAT(Check(), HasSubstr("the daemon keeps its old files"));
  std::filesystem::rename(root_ + "/other.pem", root_ + "/server.pem");
  EXPECT_THAT(Check(), StartsWith("ok "));
  chmod((root_ + "/server.key").c_str(), 0644);
  EXPECT_THAT(Check(), HasSubstr("(mode 0644), so the daemon refuses it"));
  Write("server.key", "no key");
  EXPECT_THAT(Check(), HasSubstr("server.key has no private key in PEM form"));
  Write("server.pem", "no certificate");
  EXPECT_THAT(Check(), HasSubstr("server.pem has no certificate in PEM form"));
  std::filesystem::remove(root_ + "/server.pem");
  EXPECT_THAT(Check(), HasSubstr("server.pem cannot be read: No such file or directory"));
}

TEST_F(TlsFileChecksTest, TheAuthoritiesOfClients) {
  Write("clients.pem", "none");
  EXPECT_THAT(Check(), HasSubstr("clients.pem have no certificate in PEM form"));
}

}  // namespace
}  // namespace tandem::cli
