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

// The largest piece of a file that an upload takes in at once.
inline constexpr size_t kMaxUploadPiece = 1 << 20;
// What a small file or a folder takes of a disk.
inline constexpr int64_t kBlockBytes = 4096;
inline constexpr int64_t kMoreThanAnyDisk = int64_t{1} << 60;

// An upload's files in a folder of their own. Not thread-safe.
//
//   upload     tandem.v1.Upload, as it was declared
//   received   a line "<SHA-256> <size> <path>" for each file that is whole and durable, in their order
//   partial-N  the file after N others, as far as it came
//   files/     the whole files
//
// What a killed process or a power cut leaves is read again by Open: a file counts once its line is durable,
// which is after the file is; whatever is beyond that is sent anew or, as the begin of the next file, checked
// by that file's digest in the end.
class UploadFolder {
 public:
  // Makes the folder and what is in it. `declared` has the digest, the number of files and bytes, and the
  // time of creation.
  static absl::StatusOr<std::unique_ptr<UploadFolder>> Create(Env* env, const std::string& folder,
                                                              const v1::Upload& declared);
  // NOT_FOUND: it holds no upload. DATA_LOSS: what it holds cannot be read.
  static absl::StatusOr<std::unique_ptr<UploadFolder>> Open(Env* env, const std::string& folder);

  // The upload as it was declared. NOT_FOUND, DATA_LOSS: as Open.
  static absl::StatusOr<v1::Upload> Declared(Env* env, const std::string& folder);

  // What files take of a disk at least, folders left out: their bytes, and a block for each. As much as no
  // disk has where somebody declares more than that, so that sums with it stay sums.
  static int64_t BytesOnDisk(int64_t bytes, int64_t files) {
    return std::min(bytes, kMoreThanAnyDisk) + std::min(files, kMoreThanAnyDisk / kBlockBytes) * kBlockBytes;
  }
  static int64_t BytesOnDisk(const v1::Upload& declared) {
    return BytesOnDisk(declared.bytes(), declared.files());
  }

  // Takes in the next piece, which is durable after Sync. There may be as many folders as files, and a few
  // more: nobody declares them. INVALID_ARGUMENT with the field at fault; ABORTED:
  // it does not begin where the upload stands; DATA_LOSS: the file that it ends is not what its digest says,
  // and was dropped; or as the file system fails (RESOURCE_EXHAUSTED where it is full). After an error the
  // next piece must begin a file.
  absl::Status Take(const v1::UploadFilesRequest& piece);

  // Makes durable what was taken in. FAILED_PRECONDITION: all files came, and are not those declared.
  absl::Status Sync();

  // The upload with what of it is durable; but the begin of the next file may be lost to a power cut.
  v1::Upload Progress() const;
  // Whether all files are durable, and are those declared.
  bool whole() const { return whole_; }
  // Bytes taken in since Sync.
  int64_t unsynced_bytes() const { return unsynced_bytes_; }
  // Where the whole files are.
  static std::string FilesFolder(const std::string& folder) { return folder + "/files"; }

 private:
  // A file whose content is complete, but perhaps not durable.
  struct Pending {
    std::unique_ptr<WritableFile> file;
    std::string path;
    std::string digest;  // Hexadecimal.
    int64_t size = 0;
    // That came with it.
    int64_t folders = 0;
  };
  // The file that is being taken in.
  struct Current {
    v1::UploadFile header;
    std::unique_ptr<WritableFile> file;
    Sha256 digest;
    int64_t offset = 0;
  };

  UploadFolder(Env* env, std::string folder) : env_(env), folder_(std::move(folder)) {}

  // Reads what is durable, and forgets what is not.
  absl::Status Load();
  absl::Status ReadReceived();
  absl::Status CheckHeader(const v1::UploadFile& file) const;
  absl::Status Begin(const v1::UploadFile& file);
  absl::Status TakePiece(const v1::UploadFilesRequest& piece);
  absl::Status EndFile();
  absl::Status SyncPending();
  absl::Status CheckManifest();
  void Count(const std::string& digest, int64_t size, const std::string& path);
  // Removes what came of other files than the next one.
  void RemoveStalePartials();
  // Files that are whole, durable or not: the next one's number.
  int64_t Files() const { return files_ + static_cast<int64_t>(pending_.size()); }
  // The last of them; empty where there is none.
  const std::string& LastPath() const { return pending_.empty() ? last_path_ : pending_.back().path; }
  std::string Path(const char* name) const { return folder_ + "/" + name; }
  std::string PartialPath() const { return folder_ + "/partial-" + std::to_string(Files()); }

  Env* const env_;
  const std::string folder_;
  v1::Upload declared_;

  // Of the durable files.
  int64_t files_ = 0;
  int64_t bytes_ = 0;
  // That they are in.
  int64_t folders_ = 0;
  std::string last_path_;
  Sha256 manifest_;
  bool whole_ = false;

  // Of what came after them.
  std::vector<Pending> pending_;
  std::set<std::string> unsynced_folders_;
  int64_t unsynced_bytes_ = 0;
  std::optional<Current> current_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOAD_FOLDER_H_
