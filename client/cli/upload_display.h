#ifndef TANDEM_CLIENT_CLI_UPLOAD_DISPLAY_H_
#define TANDEM_CLIENT_CLI_UPLOAD_DISPLAY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/session.h"
#include "client/lib/client.h"
#include "client/lib/upload_plan.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem::cli {

// Prints a note beside the line of progress. Prints nothing if the output is structured.
void UploadNote(Session& session, absl::string_view text);

// Computes the digests of the plan's files, with a line of progress. Errors as client::ComputeDigests;
// CANCELLED after Ctrl-C.
absl::Status ComputeDigests(Session& session, client::UploadPlan& plan);

// Uploads the files of a plan with digests, with a line of progress. A repeated call continues. Errors as
// Client::Upload; CANCELLED after Ctrl-C.
absl::StatusOr<v1::Upload> UploadFiles(Session& session, client::Client& client,
                                       const client::UploadPlan& plan);

// Prints the error of a call. Returns its exit code; after Ctrl-C, which is not an error, kDetached.
int FailStopped(Session& session, const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_UPLOAD_DISPLAY_H_
