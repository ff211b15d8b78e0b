#ifndef TANDEM_CLIENT_CLI_DATASET_OPTIONS_H_
#define TANDEM_CLIENT_CLI_DATASET_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::cli {

// A data set on a command line: a file, or a format's option with --validation. --set changes its other
// fields.
struct DatasetOptions {
  std::string file;
  std::string csv;
  std::string text;
  std::string image_folder;
  std::string webdataset;
  std::string cifar;
  std::vector<std::string> idx;
  std::vector<std::string> npy;
  std::vector<std::string> validation;
  std::vector<std::string> overrides;

  // Adds the options to a command. `this` must outlive the command.
  void AddTo(Command command);

  // Returns the data set. INVALID_ARGUMENT if no source or two sources are given, or if --validation does not
  // fit the format. Other errors are those of ReadDatasetFile and ApplyOverride.
  absl::StatusOr<v1::DatasetSpec> Read() const;

  // Returns a sentence about a test part of FILE that the data set does not use, or "".
  std::string Note() const;

  // Returns whether no option is given.
  bool IsEmpty() const { return Given().empty() && validation.empty() && overrides.empty(); }

  // Returns the folder of relative paths on this machine: the file's folder, or "" for the working folder.
  std::string Folder() const;

 private:
  // The kind of FILE: the description of a data set, or the data itself.
  enum class FileKind { kDescription, kTable, kText, kImages };
  FileKind KindOfFile() const;
  // Returns the names of the given options.
  std::vector<std::string> Given() const;
  absl::Status SetSource(v1::DatasetSpec* spec) const;
  // Sets the source if FILE is the data. INVALID_ARGUMENT if FILE has two folders for the same part of a data
  // set.
  absl::Status SetData(FileKind kind, v1::DatasetSpec* spec) const;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DATASET_OPTIONS_H_
