#include "server/admission/known_datasets.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Returns the file's path, with the first of `endings` that exists; empty if none exists.
std::string FindFile(const std::string& folder, absl::string_view file,
                     std::initializer_list<const char*> endings) {
  std::error_code ignored;
  for (const char* ending : endings) {
    std::string path = absl::StrCat(folder, "/", file, ending);
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return "";
}

bool FindIdx(const std::string& folder, v1::IdxSource* source) {
  const auto find = [&](const char* name) { return FindFile(folder, name, {"", ".gz", ".xz"}); };
  source->set_train_images(find("train-images-idx3-ubyte"));
  source->set_train_labels(find("train-labels-idx1-ubyte"));
  source->set_validation_images(find("t10k-images-idx3-ubyte"));
  source->set_validation_labels(find("t10k-labels-idx1-ubyte"));
  return !source->train_images().empty() && !source->train_labels().empty() &&
         !source->validation_images().empty() && !source->validation_labels().empty();
}

bool HasAll(const std::string& folder, std::initializer_list<const char*> files) {
  for (const char* file : files) {
    if (FindFile(folder, file, {"", ".gz", ".xz"}).empty()) return false;
  }
  return true;
}

bool FindCifar(const std::string& folder, v1::CifarSource* source) {
  const auto has_files = [](const std::string& place) {
    return HasAll(place, {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                          "data_batch_5.bin", "test_batch.bin"}) ||
           HasAll(place, {"train.bin", "test.bin"});
  };
  for (const char* place : {"", "/cifar-10-batches-bin", "/cifar-100-binary"}) {
    if (!has_files(folder + place)) continue;
    source->set_path(folder + place);
    return true;
  }
  for (const char* archive : {"cifar-10-binary.tar", "cifar-100-binary.tar"}) {
    source->set_path(FindFile(folder, archive, {"", ".gz", ".xz"}));
    if (!source->path().empty()) return true;
  }
  return false;
}

}  // namespace

const std::vector<KnownDataset>& KnownDatasets() {
  static const auto& datasets = *new std::vector<KnownDataset>{
      {"cifar-10",
       "60,000 coloured images of animals and vehicles, 32 by 32 pixels, in 10 classes (Krizhevsky, 2009).",
       {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
       "'tandem datasets fetch cifar-10' brings it; or put cifar-10-binary.tar.gz from "
       "https://www.cs.toronto.edu/~kriz/cifar.html, or the six .bin files "
       "in it, into a "
       "subfolder 'cifar-10' of one of them (--data-folder)"},
      {"cifar-100",
       "60,000 coloured images of animals, plants and things, 32 by 32 pixels, in 100 classes (Krizhevsky, "
       "2009).",
       {},
       "'tandem datasets fetch cifar-100' brings it; or put cifar-100-binary.tar.gz from "
       "https://www.cs.toronto.edu/~kriz/cifar.html, or what is in it, into "
       "a "
       "subfolder 'cifar-100' of one of them (--data-folder)"},
      {"fashion-mnist",
       "70,000 grey images of clothes, 28 by 28 pixels, in 10 classes (Zalando Research, 2017).",
       // Xiao, Rasul and Vollgraf 2017.
       {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
        "Ankle boot"},
       "'tandem datasets fetch fashion-mnist' brings it; or install Debian's package dataset-fashion-mnist, "
       "which goes to /usr/share/datasets, or put its four "
       "IDX files into a subfolder 'fashion-mnist' of one of them (--data-folder)"},
      {"mnist",
       "70,000 grey images of handwritten digits, 28 by 28 pixels, in 10 classes (LeCun, Cortes and Burges, "
       "1998).",
       {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
       "'tandem datasets fetch mnist' brings it; or put its four IDX files (train-images-idx3-ubyte and so "
       "on, plain, .gz or .xz) into a subfolder 'mnist' of "
       "one "
       "of them (--data-folder)"},
  };
  return datasets;
}

const KnownDataset* FindKnownDataset(absl::string_view name) {
  for (const KnownDataset& dataset : KnownDatasets()) {
    if (dataset.name == name) return &dataset;
  }
  return nullptr;
}

std::optional<v1::DatasetSpec> SourceIn(const std::string& folder) {
  v1::DatasetSpec spec;
  if (FindIdx(folder, spec.mutable_idx()) || FindCifar(folder, spec.mutable_cifar())) return spec;
  return std::nullopt;
}

}  // namespace tandem
