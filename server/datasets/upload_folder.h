#ifndef TANDEM_SERVER_DATASETS_UPLOAD_FOLDER_H_
#define TANDEM_SERVER_DATASETS_UPLOAD_FOLDER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/env.h"
#include "engine/base/sha256.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// The most bytes of a file in one message.
inline constexpr size_t kMaxUploadPiece = 1 << 20;
// The disk space of a folder, and of a file besides its bytes.
inline constexpr int64_t kBlockBytes = 4096;
inline constexpr int64_t kMoreThanAnyDisk = int64_t{1} << 60;

// The files of an upload, in their own folder. Not thread-safe.
//
//   upload     tandem.v1.Upload, as declared
//   received   a line "<SHA-256> <size> <path>" for each durable whole file, in order
//   partial-N  the next file after N whole files, as far as received
//   files/     the whole files
//
// After a crash or a power cut, Open reads the folder again. A file counts once its line is durable. The line
// is written after the file is durable. The client sends all later files again. The client may also continue
// the partial file, whose digest is checked at its end.
class UploadFolder {
 public:
  // Creates the folder and its files. `declared` must have the digest, the number of files and bytes, and the
  // time of creation.
  static absl::StatusOr<std::unique_ptr<UploadFolder>> Create(Env* env, const std::string& folder,
                                                              const v1::Upload& declared);
  // NOT_FOUND: the folder holds no upload. DATA_LOSS: its files cannot be read.
  static absl::StatusOr<std::unique_ptr<UploadFolder>> Open(Env* env, const std::string& folder);

  // Returns the upload as declared. NOT_FOUND, DATA_LOSS as Open.
  static absl::StatusOr<v1::Upload> Declared(Env* env, const std::string& folder);

  // Returns the least disk space of files without their folders, in bytes: their bytes and a block per file.
  // Clamps huge declared values, so that sums do not overflow.
  static int64_t BytesOnDisk(int64_t bytes, int64_t files) {
    return std::min(bytes, kMoreThanAnyDisk) + std::min(files, kMoreThanAnyDisk / kBlockBytes) * kBlockBytes;
  }
  static int64_t BytesOnDisk(const v1::Upload& declared) {
    return BytesOnDisk(declared.bytes(), declared.files());
  }

  // Accepts the next piece. The piece is durable after Sync. An upload may have slightly more folders than
  // files. After an error, the next piece must start a file.
  //
  // INVALID_ARGUMENT names the wrong field. ABORTED: the piece does not start at the upload's next byte.
  // DATA_LOSS: the piece ends a file with a wrong digest, and the file was dropped. Other errors are the file
  // system's; RESOURCE_EXHAUSTED if the disk is full.
  absl::Status Take(const v1::UploadFilesRequest& piece);

  // Makes all pieces durable. FAILED_PRECONDITION: all files are here, but they differ from the declaration.
  absl::Status Sync();

  // Returns the upload with its durable progress. A power cut may still lose the incomplete file.
  v1::Upload Progress() const;
  // Returns true if all declared files are durable.
  bool whole() const { return whole_; }
  // The bytes since the last Sync.
  int64_t unsynced_bytes() const { return unsynced_bytes_; }
  // Returns the folder of the whole files.
  static std::string FilesFolder(const std::string& folder) { return folder + "/files"; }

 private:
  // A complete file that may not be durable yet.
  struct Pending {
    std::unique_ptr<WritableFile> file;
    std::string path;
    std::string digest;  // Hexadecimal.
    int64_t size = 0;
    // The new folders that the file needed.
    int64_t folders = 0;
  };
  // The incomplete file that receives pieces.
  struct Current {
    v1::UploadFile header;
    std::unique_ptr<WritableFile> file;
    Sha256 digest;
    int64_t offset = 0;
  };

  UploadFolder(Env* env, std::string folder) : env_(env), folder_(std::move(folder)) {}

  // Reads the durable state, and forgets everything else.
  absl::Status Load();
  absl::Status ReadReceived();
  absl::Status CheckHeader(const v1::UploadFile& file) const;
  absl::Status Begin(const v1::UploadFile& file);
  absl::Status TakePiece(const v1::UploadFilesRequest& piece);
  absl::Status EndFile();
  absl::Status SyncPending();
  absl::Status CheckManifest();
  void Count(const std::string& digest, int64_t size, const std::string& path);
  // Removes the partial files of all files except the next.
  void RemoveStalePartials();
  // The number of complete files, durable or not. It names the next partial file.
  int64_t Files() const { return files_ + static_cast<int64_t>(pending_.size()); }
  // The path of the last complete file; empty if none.
  const std::string& LastPath() const { return pending_.empty() ? last_path_ : pending_.back().path; }
  std::string Path(const char* name) const { return folder_ + "/" + name; }
  std::string PartialPath() const { return folder_ + "/partial-" + std::to_string(Files()); }

  Env* const env_;
  const std::string folder_;
  v1::Upload declared_;

  // Totals of the durable files.
  int64_t files_ = 0;
  int64_t bytes_ = 0;
  // The number of folders with durable files.
  int64_t folders_ = 0;
  std::string last_path_;
  Sha256 manifest_;
  bool whole_ = false;

  // The state after the durable files.
  std::vector<Pending> pending_;
  std::set<std::string> unsynced_folders_;
  int64_t unsynced_bytes_ = 0;
  std::optional<Current> current_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOAD_FOLDER_H_
