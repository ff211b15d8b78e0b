#ifndef TANDEM_SERVER_DATASETS_SAMPLE_UPLOAD_H_
#define TANDEM_SERVER_DATASETS_SAMPLE_UPLOAD_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/sha256.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// For tests: the files of an upload, by path.
class SampleUpload {
 public:
  explicit SampleUpload(std::map<std::string, std::string> files) : files_(std::move(files)) {}
  static SampleUpload OneFile(const std::string& path, const std::string& content) {
    return SampleUpload(std::map<std::string, std::string>{std::pair(path, content)});
  }

  // The argument of CreateUpload.
  v1::Upload Declaration() const {
    v1::Upload upload;
    std::string manifest;
    for (const auto& [path, content] : files_) {
      absl::StrAppend(&manifest, *Sha256Of(content), "  ", path, "\n");
      upload.set_bytes(upload.bytes() + static_cast<int64_t>(content.size()));
    }
    upload.set_files(static_cast<int64_t>(files_.size()));
    upload.set_manifest_sha256(absl::HexStringToBytes(*Sha256Of(manifest)));
    return upload;
  }

  // Returns the messages that complete `upload`, with at most `piece` bytes each.
  std::vector<v1::UploadFilesRequest> Pieces(const v1::Upload& upload, size_t piece = 4) const {
    std::vector<v1::UploadFilesRequest> pieces;
    int64_t skipped = upload.files_received();
    size_t offset = static_cast<size_t>(upload.next_offset());
    for (const auto& [path, content] : files_) {
      if (skipped-- > 0) continue;
      bool first = true;
      do {
        v1::UploadFilesRequest& request = pieces.emplace_back();
        if (first) *request.mutable_file() = Header(path, offset);
        request.set_data(content.substr(offset, piece));
        offset = std::min(content.size(), offset + piece);
        first = false;
      } while (offset < content.size());
      offset = 0;
    }
    return pieces;
  }

  v1::UploadFile Header(const std::string& path, size_t offset = 0) const {
    v1::UploadFile file;
    file.set_path(path);
    file.set_size(static_cast<int64_t>(files_.at(path).size()));
    file.set_sha256(absl::HexStringToBytes(*Sha256Of(files_.at(path))));
    file.set_offset(static_cast<int64_t>(offset));
    return file;
  }

  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  const std::map<std::string, std::string> files_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_SAMPLE_UPLOAD_H_
