#include "server/datasets/uploaded_source.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/source_paths.h"
#include "server/admission/remote_data.h"
#include "server/datasets/upload_path.h"

namespace tandem {

absl::StatusOr<v1::DatasetSpec> AtUploadedFiles(v1::DatasetSpec spec, const std::string& uploads_folder,
                                                const std::string& files_folder) {
  FieldViolations violations;
  for (const SourcePath& path : PathsOf(&spec)) {
    if (path.path->empty() || IsUrl(*path.path)) continue;
    if (path.path->front() == '/') {
      // An absolute path must not lead to uploaded files of any set.
      const std::string normal = std::filesystem::path(*path.path).lexically_normal().string();
      if (absl::StartsWith(normal, uploads_folder + "/")) {
        violations.Add(path.field, "leads to uploaded files; those of the upload have relative paths");
      }
      continue;
    }
    const absl::string_view relative = absl::StripSuffix(absl::StripPrefix(*path.path, "./"), "/");
    if (const absl::Status inside = CheckUploadPath(relative); !inside.ok()) {
      violations.Add(path.field, inside.message());
    }
    *path.path = absl::StrCat(files_folder, "/", relative);
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return spec;
}

}  // namespace tandem
