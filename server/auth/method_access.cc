#include "server/auth/method_access.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"

namespace tandem {
namespace {

constexpr v1::TokenRole kViewer = v1::TOKEN_ROLE_VIEWER;
constexpr v1::TokenRole kSubmitter = v1::TOKEN_ROLE_SUBMITTER;
constexpr v1::TokenRole kAdmin = v1::TOKEN_ROLE_ADMIN;

constexpr char kJobs[] = "tandem.v1.JobService";
constexpr char kModels[] = "tandem.v1.ModelService";
constexpr char kDatasets[] = "tandem.v1.DatasetService";
constexpr char kSweeps[] = "tandem.v1.SweepService";
constexpr char kDaemon[] = "tandem.v1.DaemonService";

constexpr bool kReads = false;
constexpr bool kChanges = true;

constexpr MethodAccess kTable[] = {
    {kJobs, "CreateJob", kSubmitter, kChanges},
    {kJobs, "ParseJob", kViewer, kReads},
    {kJobs, "GetJob", kViewer, kReads},
    {kJobs, "GetJobHistory", kViewer, kReads},
    {kJobs, "ListJobs", kViewer, kReads},
    {kJobs, "UpdateJob", kSubmitter, kChanges},
    {kJobs, "CancelJob", kSubmitter, kChanges},
    {kJobs, "PauseJob", kSubmitter, kChanges},
    {kJobs, "ResumeJob", kSubmitter, kChanges},
    {kJobs, "ForkJob", kSubmitter, kChanges},
    {kJobs, "ListCheckpoints", kViewer, kReads},
    {kJobs, "DeleteJob", kSubmitter, kChanges},
    {kJobs, "WatchJob", kViewer, kReads},
    {kJobs, "WatchJobs", kViewer, kReads},
    {kJobs, "ReadLog", kViewer, kReads},
    {kJobs, "ReadArtifact", kViewer, kReads},

    // These methods change nothing, but use processes and devices.
    {kModels, "DescribeModel", kViewer, kReads},
    {kModels, "Predict", kSubmitter, kReads},
    {kModels, "Evaluate", kSubmitter, kReads},
    {kModels, "ExportModel", kSubmitter, kReads},

    {kDatasets, "CreateDataset", kSubmitter, kChanges},
    {kDatasets, "DeleteDataset", kSubmitter, kChanges},
    {kDatasets, "FetchDataset", kSubmitter, kChanges},
    {kDatasets, "CreateUpload", kSubmitter, kChanges},
    {kDatasets, "GetUpload", kViewer, kReads},
    {kDatasets, "ListUploads", kViewer, kReads},
    {kDatasets, "DeleteUpload", kSubmitter, kChanges},
    {kDatasets, "UploadFiles", kSubmitter, kChanges},

    {kSweeps, "CreateSweep", kSubmitter, kChanges},
    {kSweeps, "ParseSweep", kViewer, kReads},
    {kSweeps, "GetSweep", kViewer, kReads},
    {kSweeps, "ListSweeps", kViewer, kReads},
    {kSweeps, "CancelSweep", kSubmitter, kChanges},
    {kSweeps, "DeleteSweep", kSubmitter, kChanges},

    {kDaemon, "GetDaemon", kViewer, kReads},
    {kDaemon, "ListDevices", kViewer, kReads},
    {kDaemon, "DrainDevice", kAdmin, kChanges},
    {kDaemon, "ResumeDevice", kAdmin, kChanges},
    {kDaemon, "ExcludeDevice", kAdmin, kChanges},
    {kDaemon, "ListQueue", kViewer, kReads},
    {kDaemon, "CreateToken", kAdmin, kChanges},
    {kDaemon, "ListTokens", kAdmin, kReads},
    {kDaemon, "RevokeToken", kAdmin, kChanges},
    {kDaemon, "CreateBackup", kAdmin, kChanges},
    {kDaemon, "ListBackups", kAdmin, kReads},
    {kDaemon, "ListDatasets", kViewer, kReads},
    {kDaemon, "GetDataset", kViewer, kReads},
    {kDaemon, "Shutdown", kAdmin, kChanges},
};

}  // namespace

absl::Span<const MethodAccess> MethodAccessTable() { return kTable; }

const MethodAccess* FindMethodAccess(absl::string_view method) {
  const auto* const found = std::find_if(std::begin(kTable), std::end(kTable),
                                         [method](const MethodAccess& one) { return one.method == method; });
  return found == std::end(kTable) ? nullptr : found;
}

absl::Status CheckRole(const Caller& caller, absl::string_view method) {
  const MethodAccess* const access = FindMethodAccess(method);
  // A method without an entry is for administrators.
  const v1::TokenRole least = access == nullptr ? kAdmin : access->least_role;
  // A role with a larger number may do more.
  if (caller.role >= least) return absl::OkStatus();
  if (least == kAdmin) {
    return WithReason(absl::PermissionDeniedError(absl::StrCat("cannot call ", method, " as \"", caller.user,
                                                               "\": only administrators may")),
                      "ADMIN_ONLY");
  }
  return WithReason(absl::PermissionDeniedError(
                        absl::StrCat("cannot call ", method, " as \"", caller.user, "\": it needs the role ",
                                     RoleName(least), ", and the token has ", RoleName(caller.role),
                                     ", which can only read; ask an administrator for another token")),
                    "ROLE_TOO_LOW");
}

absl::string_view RoleName(v1::TokenRole role) {
  switch (role) {
    case v1::TOKEN_ROLE_VIEWER:
      return "viewer";
    case v1::TOKEN_ROLE_SUBMITTER:
      return "submitter";
    case v1::TOKEN_ROLE_ADMIN:
      return "admin";
    default:
      return "none";
  }
}

}  // namespace tandem
