#include "client/cli/dataset_options.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/lib/job_file.h"
#include "proto/data_folder/data_folder.h"

namespace tandem::cli {

void DatasetOptions::AddTo(Command command) {
  command.AddOption(
      "FILE", file,
      "YAML or JSON file in the form of a job's `dataset` (`-` is standard input), or the data itself: a "
      "table (.csv), text (.txt), or a folder or archive (.zip, .tar.gz) of pictures, which may have the "
      "subfolders train and valid");
  command.AddOption("--csv", csv, "A table: the training file").ValueName("FILE");
  command
      .AddOption("--image-folder", image_folder,
                 "Pictures, with a subfolder for each class: the training folder")
      .ValueName("DIR");
  command
      .AddOption(
          "--webdataset", webdataset,
          "Pictures in shards: a folder with .tar files, or a pattern such as 'train-{0000..0099}.tar'")
      .ValueName("SHARDS");
  command.AddOption("--npy", npy, "NumPy arrays: training inputs and targets").ValueName("FILE").Values(2, 2);
  command.AddOption("--text", text, "Text for a language model: the training file").ValueName("FILE");
  command.AddOption("--idx", idx, "IDX files, as MNIST has: training images and labels")
      .ValueName("FILE")
      .Values(2, 2);
  command.AddOption("--cifar", cifar, "CIFAR's archive, or a folder of its binary files").ValueName("FILE");
  command
      .AddOption("--validation", validation,
                 "The validation file or folder; for --npy and --idx, both files (default: none)")
      .ValueName("FILE")
      .Values(1, 2);
  command
      .AddOption("--set", overrides,
                 "Set a field: PATH=VALUE, such as csv.target_columns=price, text.sequence_length=64 or "
                 "validation_split.fraction=0.1")
      .ValueName("PATH=VALUE")
      .OneValueEach();
}

DatasetOptions::FileKind DatasetOptions::KindOfFile() const {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) return FileKind::kImages;
  // The daemon recognises compressed files by their content.
  for (const char* packed : {"", ".gz", ".xz", ".bz2", ".zst", ".zip"}) {
    for (const char* table : {".csv", ".tsv"}) {
      if (absl::EndsWithIgnoreCase(file, absl::StrCat(table, packed))) return FileKind::kTable;
    }
    if (absl::EndsWithIgnoreCase(file, absl::StrCat(".txt", packed))) return FileKind::kText;
  }
  if (IsArchiveName(file)) return FileKind::kImages;
  return FileKind::kDescription;
}

absl::Status DatasetOptions::SetData(FileKind kind, v1::DatasetSpec* spec) const {
  const std::string first = validation.empty() ? "" : validation[0];
  if (kind == FileKind::kTable) {
    spec->mutable_csv()->set_train(file);
    spec->mutable_csv()->set_validation(first);
    if (absl::StrContains(absl::AsciiStrToLower(file), ".tsv")) spec->mutable_csv()->set_delimiter("\\t");
  } else if (kind == FileKind::kText) {
    spec->mutable_text()->set_train(file);
    spec->mutable_text()->set_validation(first);
  } else {
    v1::ImageFolderSource* images = spec->mutable_image_folder();
    images->set_train(file);
    images->set_validation(first);
    const absl::StatusOr<DataParts> parts = FindDataParts(file);
    if (!parts.ok()) return parts.status();
    if (parts->train.empty()) return absl::OkStatus();
    images->set_train(parts->train);
    if (first.empty()) images->set_validation(parts->validation);
  }
  return absl::OkStatus();
}

std::string DatasetOptions::Note() const {
  if (file.empty() || KindOfFile() != FileKind::kImages || !validation.empty()) return "";
  const absl::StatusOr<DataParts> parts = FindDataParts(file);
  if (!parts.ok() || parts->test.empty()) return "";
  return absl::StrCat(
      "the test part ", parts->test, " is left out",
      parts->validation.empty() ? absl::StrCat("; --validation ", parts->test, " validates with it") : "");
}

namespace {

// Returns whether a file is surely no description in YAML or JSON.
bool IsOtherFile(const std::string& file) {
  static constexpr const char* kEndings[] = {
      ".pt",     ".pth",    ".h5",          ".hdf5",  ".onnx", ".parquet", ".feather", ".pkl",
      ".pickle", ".7z",     ".zip",         ".rar",   ".tar",  ".tgz",     ".gz",      ".xz",
      ".bz2",    ".zst",    ".docx",        ".doc",   ".xlsx", ".xls",     ".pdf",     ".mat",
      ".db",     ".sqlite", ".safetensors", ".keras", ".png",  ".jpg",     ".jpeg"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* ending) { return absl::EndsWithIgnoreCase(file, ending); });
}

}  // namespace

std::vector<std::string> DatasetOptions::Given() const {
  std::vector<std::string> given;
  if (!file.empty()) given.push_back("FILE");
  if (!csv.empty()) given.push_back("--csv");
  if (!text.empty()) given.push_back("--text");
  if (!image_folder.empty()) given.push_back("--image-folder");
  if (!webdataset.empty()) given.push_back("--webdataset");
  if (!cifar.empty()) given.push_back("--cifar");
  if (!idx.empty()) given.push_back("--idx");
  if (!npy.empty()) given.push_back("--npy");
  return given;
}

absl::Status DatasetOptions::SetSource(v1::DatasetSpec* spec) const {
  const bool pairs = !idx.empty() || !npy.empty();
  if (!validation.empty() && (validation.size() == 2) != pairs) {
    return absl::InvalidArgumentError(pairs ? "--validation: give both files, as for training"
                                            : "--validation: give one file or folder");
  }
  const std::string first = validation.empty() ? "" : validation[0];
  if (const FileKind kind = KindOfFile(); !file.empty() && kind != FileKind::kDescription) {
    return SetData(kind, spec);
  } else if (!csv.empty()) {
    spec->mutable_csv()->set_train(csv);
    spec->mutable_csv()->set_validation(first);
  } else if (!text.empty()) {
    spec->mutable_text()->set_train(text);
    spec->mutable_text()->set_validation(first);
  } else if (!image_folder.empty()) {
    spec->mutable_image_folder()->set_train(image_folder);
    spec->mutable_image_folder()->set_validation(first);
  } else if (!webdataset.empty()) {
    spec->mutable_webdataset()->set_train(webdataset);
    spec->mutable_webdataset()->set_validation(first);
  } else if (!idx.empty()) {
    spec->mutable_idx()->set_train_images(idx[0]);
    spec->mutable_idx()->set_train_labels(idx[1]);
    if (!validation.empty()) {
      spec->mutable_idx()->set_validation_images(validation[0]);
      spec->mutable_idx()->set_validation_labels(validation[1]);
    }
  } else if (!npy.empty()) {
    spec->mutable_npy()->mutable_train_inputs()->set_path(npy[0]);
    spec->mutable_npy()->mutable_train_targets()->set_path(npy[1]);
    if (!validation.empty()) {
      spec->mutable_npy()->mutable_validation_inputs()->set_path(validation[0]);
      spec->mutable_npy()->mutable_validation_targets()->set_path(validation[1]);
    }
  } else if (!cifar.empty()) {
    spec->mutable_cifar()->set_path(cifar);
    if (!validation.empty()) {
      return absl::InvalidArgumentError(
          "cannot use --validation with --cifar: CIFAR has its own validation files; name files with --set "
          "cifar.train=[...] and cifar.validation=[...]");
    }
  } else if (!validation.empty()) {
    return absl::InvalidArgumentError(
        "cannot use --validation here: no training data are given; give --csv, --image-folder, --webdataset, "
        "--npy, --text or --idx");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::DatasetSpec> DatasetOptions::Read() const {
  const std::vector<std::string> given = Given();
  if (given.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("cannot use ", absl::StrJoin(given, " and "),
                                                   " together: a data set has one source; give one of them"));
  }
  if (given.empty() && overrides.empty()) {
    return absl::InvalidArgumentError(
        "cannot tell the data set: no source is given; give a YAML file, --csv, --image-folder, "
        "--webdataset, --npy, --text, --idx or --cifar");
  }
  if (absl::EndsWith(file, ".npz")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot use ", file, ": its arrays of inputs and targets are not named; give --npy ", file, " ", file,
        " --set npy.train_inputs.member=NAME --set npy.train_targets.member=NAME"));
  }
  if (absl::EndsWith(file, ".npy")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot use ", file,
        " alone: a data set has an array of inputs and an array of targets; give --npy INPUTS TARGETS"));
  }
  if (IsOtherFile(file) && KindOfFile() == FileKind::kDescription) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": cannot tell the kind of data by this file's ending; give a table (.csv, .tsv), text "
        "(.txt), a folder of images or a description (.yaml), or name the kind: --csv, --npy, --text, "
        "--idx or --cifar"));
  }
  v1::JobSpec holder;
  if (!file.empty() && KindOfFile() == FileKind::kDescription) {
    absl::StatusOr<v1::DatasetSpec> read = client::ReadDatasetFile(file);
    if (!read.ok()) return read.status();
    *holder.mutable_dataset() = *std::move(read);
  }
  if (absl::Status status = SetSource(holder.mutable_dataset()); !status.ok()) return status;
  for (const std::string& assignment : overrides) {
    absl::Status status = ApplyOverride(absl::StrCat("dataset.", assignment), &holder);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("--set ", assignment, ": ", status.message()));
    }
  }
  return holder.dataset();
}

std::string DatasetOptions::Folder() const {
  const bool describes = !file.empty() && file != "-" && KindOfFile() == FileKind::kDescription;
  return describes ? std::filesystem::path(file).parent_path().string() : "";
}

}  // namespace tandem::cli
