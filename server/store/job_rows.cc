#include "server/store/job_rows.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {

absl::StatusOr<StoredJob> ReadJobRow(const Connection& connection, Query* query, bool with_spec) {
  StoredJob row;
  row.number = query->GetInt(0);
  row.last_worker_sequence = query->GetInt(1);
  row.keeps_best = query->GetInt(2) != 0;
  TANDEM_RETURN_IF_ERROR(ParseStored(query->GetBlob(3), "job", &row.job));
  row.job.set_folder(absl::StrCat(connection.jobs_folder(), "/", JobId(row.job.name())));
  if (with_spec) TANDEM_RETURN_IF_ERROR(ParseStored(query->GetBlob(4), "spec", row.job.mutable_spec()));
  return row;
}

absl::Status ParseStored(absl::string_view bytes, absl::string_view what,
                         google::protobuf::MessageLite* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("cannot read a stored ", what, " of ", bytes.size(), " bytes: it is damaged"));
}

absl::Status NoSuchJob(absl::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no job \"jobs/", id, "\""));
}

}  // namespace tandem
