#include "engine/data/formats/zip_content.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"
#include "engine/data/formats/zip.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

// The most files that an error names.
constexpr size_t kNamedFiles = 5;

class ZipContent final : public CompressedFile {
 public:
  ZipContent(std::string path, ZipFile zip) : CompressedFile(std::move(path)), zip_(std::move(zip)) {}

  absl::Status Start() {
    std::vector<std::string> names;
    for (const ZipMember& member : zip_.members()) {
      if (absl::EndsWith(member.name, "/") || IsSkippedPath(member.name)) continue;
      names.push_back(member.name);
      member_ = &member;
    }
    if (names.empty()) return Error("is a zip archive without files");
    if (names.size() > 1) {
      const size_t files = names.size();
      names.resize(std::min(files, kNamedFiles));
      return Error(absl::StrCat("is a zip archive of ", files,
                                " files, and a single file is wanted; unpack it: ", ListNames(names),
                                files > kNamedFiles ? ", ..." : ""));
    }
    TANDEM_ASSIGN_OR_RETURN(reader_, zip_.OpenMember(*member_));
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override { return reader_->Read(data, size); }
  int64_t StatedLength() override { return member_->bytes; }

 private:
  const ZipFile zip_;
  const ZipMember* member_ = nullptr;  // In zip_.
  std::unique_ptr<ZipReader> reader_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompressedFile>> OpenZipContent(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(ZipFile zip, ZipFile::Open(path));
  auto file = std::make_unique<ZipContent>(path, std::move(zip));
  TANDEM_RETURN_IF_ERROR(file->Start());
  return file;
}

}  // namespace tandem
