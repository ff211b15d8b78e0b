#ifndef TANDEM_ENGINE_DATA_FORMATS_PICTURE_TREE_H_
#define TANDEM_ENGINE_DATA_FORMATS_PICTURE_TREE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The files of a folder, a zip archive or a tar archive, plain or compressed, by the rules of
// proto/data_folder. Thread-safe.
class PictureTree {
 public:
  struct File {
    std::string path;  // Relative to the tree: "rose/1.png".
    int64_t bytes = 0;
    // For the tree alone: the number of a zip member, the offset in a tar archive, or the number of a picture
    // in memory.
    int64_t place = 0;
  };

  // Lists a folder or an archive. Reads the pictures of a compressed tar archive into memory. If all pictures
  // of an archive are in one top folder, and there in subfolders, the top folder becomes the tree.
  //
  // INVALID_ARGUMENT, with the path:
  // - The path is neither a folder nor an archive, or the archive is damaged.
  // - An archive has a link, or a file's size in a folder cannot be read.
  // - There are more than 4,194,304 files; in an archive, folders count too.
  // - The pictures of a compressed tar archive do not fit in memory.
  static absl::StatusOr<std::shared_ptr<const PictureTree>> Open(const std::string& path);
  virtual ~PictureTree() = default;
  PictureTree(const PictureTree&) = delete;
  PictureTree& operator=(const PictureTree&) = delete;

  // All files, in the order of their paths.
  const std::vector<File>& files() const { return files_; }
  // The paths of all folders, in order: "rose", "rose/red".
  const std::vector<std::string>& folders() const { return folders_; }
  // Returns the name of a path of the tree for people: "flowers.zip/rose/1.png". "" is the tree itself.
  std::string Shown(absl::string_view path) const;

  // Reads the first `most` bytes of a picture, fewer if it is shorter. The file is in files().
  // INVALID_ARGUMENT with the shown path: the file cannot be read, or is no picture by its name.
  virtual absl::StatusOr<std::string> Read(const File& file, int64_t most) const = 0;

 protected:
  explicit PictureTree(std::string root) : root_(std::move(root)) {}
  // Adds a member of an archive. Skips names of IsSkippedPath. INVALID_ARGUMENT: too many files.
  absl::Status AddMember(absl::string_view name, int64_t bytes, int64_t place);
  // Sorts the files. Of files with the same path, keeps the last. Adds the folders of all files.
  void Finish();
  // Calls Finish. Then makes an archive's only top folder the tree, as Open says.
  void FinishArchive();

  std::string root_;
  std::vector<File> files_;
  std::vector<std::string> folders_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_PICTURE_TREE_H_
