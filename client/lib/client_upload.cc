#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/client.h"
#include "client/lib/status_details.h"

namespace tandem::client {
namespace {

constexpr size_t kPiece = 1 << 18;

absl::Status CannotRead(const LocalFile& file) {
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot upload ", file.local,
      ": it cannot be read, or it has become shorter; upload it again when no program writes it"));
}

}  // namespace

absl::StatusOr<v1::Upload> Client::SendFiles(const v1::Upload& upload, const UploadPlan& plan,
                                             StreamObserver& observer,
                                             const std::function<void(int64_t bytes)>& on_bytes) {
  grpc::ClientContext context;
  if (absl::Status refused = Prepare(&context); !refused.ok()) return refused;
  v1::Upload response;
  const std::unique_ptr<grpc::ClientWriter<v1::UploadFilesRequest>> writer =
      datasets_->UploadFiles(&context, &response);
  int64_t bytes = upload.bytes_received();
  int64_t offset = upload.next_offset();
  absl::Status own_end;
  bool sending = true;
  v1::UploadFilesRequest piece;
  piece.set_name(upload.name());
  for (size_t i = static_cast<size_t>(upload.files_received());
       i < plan.files.size() && sending && own_end.ok(); ++i) {
    const LocalFile& file = plan.files[i];
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> open(std::fopen(file.local.c_str(), "rb"),
                                                               std::fclose);
    if (open == nullptr || fseeko(open.get(), offset, SEEK_SET) != 0) {
      own_end = CannotRead(file);
      break;
    }
    piece.mutable_file()->set_path(file.path);
    piece.mutable_file()->set_size(file.size);
    piece.mutable_file()->set_sha256(file.sha256);
    piece.mutable_file()->set_offset(offset);
    // An empty file has a piece without bytes, as has a file whose bytes the daemon already has.
    do {
      const size_t wanted = std::min<int64_t>(kPiece, file.size - offset);
      piece.mutable_data()->resize(wanted);
      if (std::fread(piece.mutable_data()->data(), 1, wanted, open.get()) != wanted) {
        own_end = CannotRead(file);
        break;
      }
      // Blocks while the daemon is slower than this loop.
      sending = writer->Write(piece);
      offset += static_cast<int64_t>(wanted);
      bytes += static_cast<int64_t>(wanted);
      piece.Clear();
      if (sending) on_bytes(bytes);
      if (!observer.KeepGoing()) own_end = absl::CancelledError("stopped");
    } while (sending && own_end.ok() && offset < file.size);
    offset = 0;
  }
  // The daemon keeps the received bytes even if the call ends early.
  if (sending) writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!own_end.ok()) return own_end;
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

absl::StatusOr<v1::Upload> Client::Upload(const UploadPlan& plan, StreamObserver& observer,
                                          const std::function<void(int64_t bytes)>& on_bytes) {
  Reconnector reconnector(reconnect_, channel_.get(), observer);
  int64_t best = -1;
  bool damaged = false;
  while (true) {
    // Also finds an earlier upload.
    absl::StatusOr<v1::Upload> upload = CreateUpload(plan);
    if (upload.ok()) {
      reconnector.OnOpen();
      // A connection that breaks before it brings new bytes does not count.
      if (std::exchange(best, std::max(best, upload->bytes_received())) < upload->bytes_received()) {
        reconnector.OnMessage();
      }
      on_bytes(upload->bytes_received());
      if (upload->files_received() < upload->files()) upload = SendFiles(*upload, plan, observer, on_bytes);
    }
    if (upload.ok() && upload->files_received() == upload->files()) return upload;
    if (!observer.KeepGoing()) return absl::CancelledError("stopped");
    absl::Status status = upload.ok() ? absl::UnavailableError(
                                            "cannot finish the upload: the daemon ended the call early; the "
                                            "same command continues the upload")
                                      : upload.status();
    // Bytes are seldom damaged on the way, and sending the file again repairs them. A file that changed here
    // stays changed.
    const bool again = absl::IsDataLoss(status) && !std::exchange(damaged, true);
    // The daemon aborts a call whose offset is, for a moment, not the upload's next offset.
    const bool moved = absl::IsAborted(status) && ErrorReason(status).empty();
    if (!again && !moved && !IsWorthReconnecting(status)) return status;
    if (absl::Status end = reconnector.OnBreak(status); !end.ok()) return end;
  }
}

}  // namespace tandem::client
