#include "client/cli/commands/predict_inputs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/lib/csv_pieces.h"
#include "client/lib/file_reading.h"
#include "client/lib/npy_pieces.h"
#include "engine/base/status_macros.h"
#include "proto/data_folder/data_folder.h"

namespace tandem::cli {
namespace {

// Kinds of skipped files that are named.
constexpr size_t kShownEndings = 5;
constexpr absl::string_view kNpyMagic = "\x93NUMPY";
// The bytes that are sent as an input. Larger arrays and tables are cut.
constexpr size_t kLargestInput = size_t{8} << 20;
constexpr size_t kLargestFile = size_t{1} << 30;
// The parts of cut files.
constexpr size_t kPartBytes = size_t{4} << 20;
constexpr int64_t kPartSamples = 10'000;

InputPart Whole(const std::string& path) {
  InputPart part;
  part.input.set_label(path);
  return part;
}

InputPart Alone(const std::string& path) {
  InputPart part = Whole(path);
  part.is_alone = true;
  return part;
}

absl::Status CannotCut(const std::string& path, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("cannot cut ", path, ", which has more than ", kLargestInput,
                                                 " bytes: ", status.message()));
}

absl::StatusOr<std::vector<InputPart>> CutArray(const std::string& path, absl::string_view content,
                                                int64_t sample_elements) {
  absl::StatusOr<std::vector<client::NpyPiece>> pieces =
      client::CutNpy(content, sample_elements, kPartBytes, kPartSamples);
  if (!pieces.ok()) return CannotCut(path, pieces.status());
  std::vector<InputPart> parts;
  for (client::NpyPiece& piece : *pieces) {
    InputPart& part = parts.emplace_back(Alone(path));
    part.input.set_npy(std::move(piece.content));
    part.first_sample = piece.first_sample;
  }
  return parts;
}

absl::StatusOr<std::vector<InputPart>> CutTable(const std::string& path, absl::string_view content) {
  absl::StatusOr<std::vector<client::CsvPiece>> pieces = client::CutCsv(content, kPartBytes, kPartSamples);
  if (!pieces.ok()) return CannotCut(path, pieces.status());
  std::vector<InputPart> parts;
  for (client::CsvPiece& piece : *pieces) {
    const bool begins_table = parts.empty();
    InputPart& part = parts.emplace_back(Alone(path));
    part.input.set_csv(std::move(piece.content));
    part.table_rows = piece.rows;
    part.begins_table = begins_table;
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PredictFiles(const std::vector<std::string>& inputs,
                                                      std::vector<std::string>& notes) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(input, ignored)) {
      files.push_back(input);
      continue;
    }
    std::vector<std::string> pictures;
    std::map<std::string, int> endings;
    int others = 0;
    const absl::Status status = WalkDataFolder(input, [&](const std::filesystem::path& path, bool is_folder) {
      if (is_folder) return;
      if (IsPictureName(path.filename().string())) {
        pictures.push_back(path.string());
        return;
      }
      ++others;
      const std::string ending = path.extension().string();
      ++endings[ending.empty() ? "without an ending" : ending];
    });
    if (!status.ok()) return status;
    if (pictures.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(input, " has no picture: no file ending in .jpg, .png, .webp, .bmp, .tiff or .gif"));
    }
    if (others > 0) {
      std::vector<std::string> parts;
      for (const auto& [ending, count] : endings) {
        if (parts.size() < kShownEndings) parts.push_back(absl::StrCat(count, " ", ending));
      }
      if (endings.size() > kShownEndings) parts.push_back("others");
      notes.push_back(absl::StrCat(input, ": ", others, others == 1 ? " file" : " files",
                                   " of other formats skipped: ", absl::StrJoin(parts, ", ")));
    }
    std::sort(pictures.begin(), pictures.end());
    files.insert(files.end(), std::make_move_iterator(pictures.begin()),
                 std::make_move_iterator(pictures.end()));
  }
  return files;
}

absl::StatusOr<std::vector<InputPart>> ReadPredictInput(const std::string& path, int64_t sample_elements) {
  TANDEM_ASSIGN_OR_RETURN(std::string content, client::ReadWholeFile(path, kLargestFile));
  const bool is_large = content.size() > kLargestInput;
  InputPart part = Whole(path);
  if (absl::StartsWith(content, kNpyMagic)) {
    if (is_large) return CutArray(path, content, sample_elements);
    part.input.set_npy(std::move(content));
  } else if (IsPictureContent(content)) {
    if (is_large) {
      return absl::InvalidArgumentError(absl::StrCat("cannot predict ", path, ": the picture has more than ",
                                                     kLargestInput, " bytes; make it smaller"));
    }
    part.input.set_image(std::move(content));
  } else if (absl::StrContains(content, '\0') || IsPictureName(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot predict ", path,
        ": it is neither a picture (JPEG, PNG, WebP, BMP, TIFF, GIF), nor an NPY file, nor a CSV "
        "table; convert it"));
  } else {
    if (is_large) return CutTable(path, content);
    part.input.set_csv(std::move(content));
  }
  std::vector<InputPart> parts;
  parts.push_back(std::move(part));
  return parts;
}

absl::Status TableNumbers::Number(const InputPart& part, std::vector<v1::Prediction>& predictions) {
  const int64_t others = part.table_rows - static_cast<int64_t>(predictions.size());
  if (part.begins_table) {
    samples_ = 0;
    names_ = others;
  }
  if (others != names_ || names_ < 0 || names_ > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot number the predictions of ", part.input.label(), ": ", part.table_rows,
                     " rows gave ", predictions.size(),
                     "; remove comments, or cut the table into files of at most ", kLargestInput, " bytes"));
  }
  if (!part.begins_table && names_ == 0) predictions.erase(predictions.begin());
  for (v1::Prediction& prediction : predictions) prediction.set_sample(samples_++);
  return absl::OkStatus();
}

}  // namespace tandem::cli
