#ifndef TANDEM_CLIENT_CLI_DATASET_OPTIONS_H_
#define TANDEM_CLIENT_CLI_DATASET_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::cli {

// A data set as it is described on a command line: by a file, or by a format's option and --validation, and
// by --set for whatever else it has.
struct DatasetOptions {
  std::string file;
  std::string csv;
  std::string text;
  std::string image_folder;
  std::string cifar;
  std::vector<std::string> idx;
  std::vector<std::string> npy;
  std::vector<std::string> validation;
  std::vector<std::string> overrides;

  // Adds the options to a command; `this` outlives it.
  void AddTo(Command command);

  // The data set. INVALID_ARGUMENT: none or two are given, --validation does not go with the format, or as
  // ReadDatasetFile and ApplyOverride.
  absl::StatusOr<v1::DatasetSpec> Read() const;

  // Returns a sentence about a test part of FILE that the data set does not use, or "".
  std::string Note() const;

  // Whether nothing is given at all.
  bool IsEmpty() const { return Given().empty() && validation.empty() && overrides.empty(); }

  // Where relative paths in it are looked for on this machine: the file's folder; else "", the working
  // folder.
  std::string Folder() const;

 private:
  // What FILE is: the description of a data set, or the data itself.
  enum class FileKind { kDescription, kTable, kText, kImages };
  FileKind KindOfFile() const;
  // Which of them are given, by the names of the options.
  std::vector<std::string> Given() const;
  absl::Status SetSource(v1::DatasetSpec* spec) const;
  // Sets the source if FILE is the data. INVALID_ARGUMENT: FILE has two folders for the same part of a data
  // set.
  absl::Status SetData(FileKind kind, v1::DatasetSpec* spec) const;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DATASET_OPTIONS_H_
