#include "engine/data/source_paths.h"

#include "absl/strings/str_cat.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

void AddIdx(v1::IdxSource* idx, std::vector<SourcePath>& paths) {
  const bool validates = !idx->validation_images().empty() || !idx->validation_labels().empty();
  paths.push_back({"idx.train_images", idx->mutable_train_images(), PathKind::kFile, true});
  paths.push_back({"idx.train_labels", idx->mutable_train_labels(), PathKind::kFile, true});
  paths.push_back({"idx.validation_images", idx->mutable_validation_images(), PathKind::kFile, validates});
  paths.push_back({"idx.validation_labels", idx->mutable_validation_labels(), PathKind::kFile, validates});
}

void AddCifar(v1::CifarSource* cifar, std::vector<SourcePath>& paths) {
  paths.push_back({"cifar.path", cifar->mutable_path(), PathKind::kFileOrFolder, cifar->train().empty()});
  for (int i = 0; i < cifar->train_size(); ++i) {
    paths.push_back({absl::StrCat("cifar.train[", i, "]"), cifar->mutable_train(i), PathKind::kFile, true});
  }
  for (int i = 0; i < cifar->validation_size(); ++i) {
    paths.push_back(
        {absl::StrCat("cifar.validation[", i, "]"), cifar->mutable_validation(i), PathKind::kFile, true});
  }
}

void AddNpy(v1::NpySource* npy, std::vector<SourcePath>& paths) {
  const bool validates = npy->has_validation_inputs() || npy->has_validation_targets();
  paths.push_back(
      {"npy.train_inputs.path", npy->mutable_train_inputs()->mutable_path(), PathKind::kFile, true});
  paths.push_back(
      {"npy.train_targets.path", npy->mutable_train_targets()->mutable_path(), PathKind::kFile, true});
  if (!validates) return;
  paths.push_back({"npy.validation_inputs.path", npy->mutable_validation_inputs()->mutable_path(),
                   PathKind::kFile, true});
  paths.push_back({"npy.validation_targets.path", npy->mutable_validation_targets()->mutable_path(),
                   PathKind::kFile, true});
}

template <typename Source>
void AddTwo(const char* name, Source* source, PathKind kind, std::vector<SourcePath>& paths) {
  paths.push_back({absl::StrCat(name, ".train"), source->mutable_train(), kind, true});
  paths.push_back({absl::StrCat(name, ".validation"), source->mutable_validation(), kind, false});
}

}  // namespace

std::vector<SourcePath> PathsOf(v1::DatasetSpec* spec) {
  std::vector<SourcePath> paths;
  switch (spec->source_case()) {
    case v1::DatasetSpec::kIdx:
      AddIdx(spec->mutable_idx(), paths);
      break;
    case v1::DatasetSpec::kCifar:
      AddCifar(spec->mutable_cifar(), paths);
      break;
    case v1::DatasetSpec::kImageFolder:
      AddTwo("image_folder", spec->mutable_image_folder(), PathKind::kFolder, paths);
      for (SourcePath& path : paths) {
        if (IsArchiveName(*path.path)) path.kind = PathKind::kFileOrFolder;
      }
      break;
    case v1::DatasetSpec::kNpy:
      AddNpy(spec->mutable_npy(), paths);
      break;
    case v1::DatasetSpec::kCsv:
      AddTwo("csv", spec->mutable_csv(), PathKind::kFile, paths);
      break;
    case v1::DatasetSpec::kWebdataset:
      AddTwo("webdataset", spec->mutable_webdataset(), PathKind::kShards, paths);
      break;
    case v1::DatasetSpec::kText:
      AddTwo("text", spec->mutable_text(), PathKind::kFile, paths);
      break;
    case v1::DatasetSpec::kSynthetic:
    case v1::DatasetSpec::SOURCE_NOT_SET:
      break;
  }
  return paths;
}

}  // namespace tandem
