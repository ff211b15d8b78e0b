#include "client/cli/commands/datasets_pack.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/lib/pack_pictures.h"

namespace tandem::cli {
namespace {

int Pack(Session& session, const client::PackRequest& request) {
  const absl::StatusOr<client::PackedPictures> packed = client::PackPictures(request);
  if (!packed.ok()) return session.Fail(packed.status());
  if (session.structured()) return session.Print(packed->spec);
  if (!packed->left_out.empty()) {
    session.terminal().Err(absl::StrCat("tandem: the test part ", packed->left_out, " is left out\n"));
  }
  if (packed->skipped_files > 0) {
    session.terminal().Err(absl::StrCat("tandem: skipped ", FormatCount(packed->skipped_files),
                                        packed->skipped_files == 1 ? " file that is" : " files that are",
                                        " no picture in the folder of a class\n"));
  }
  const std::string spec = absl::StrCat(request.shards, "/", client::kPackedSpec);
  session.terminal().Out(absl::StrCat("packed ", FormatCount(packed->train), " training and ",
                                      FormatCount(packed->validation), " validation pictures of ",
                                      FormatCount(packed->spec.class_names_size()), " classes into ",
                                      FormatCount(packed->shards), packed->shards == 1 ? " shard" : " shards",
                                      " (", FormatBytes(packed->bytes), ")\n", spec,
                                      " describes them: tandem datasets add NAME ", spec, " --upload\n"));
  return kSucceeded;
}

}  // namespace

void AddDatasetsPack(Command datasets, Session& session, int& exit_code) {
  const Command command = datasets.AddCommand(
      "pack", "Write a folder of pictures into shards (tar files) for a data set of kind webdataset");
  auto request = std::make_shared<client::PackRequest>();
  command
      .AddOption("FOLDER", request->folder,
                 "The pictures: a subfolder for each class, or the subfolders train and valid")
      .Required();
  command.AddOption("SHARDS", request->shards, "A new folder for the shards").Required();
  command
      .AddOption("--shard-size", request->shard_bytes, "The size of a shard, such as 1GiB (default: 256MiB)")
      .ValueName("SIZE")
      .Size();
  command.Action([request, &session, &exit_code] { exit_code = Pack(session, *request); },
                 [request]() -> absl::Status {
                   if (request->shard_bytes >= 1) return absl::OkStatus();
                   return absl::InvalidArgumentError("--shard-size: must be at least 1 byte");
                 });
}

}  // namespace tandem::cli
