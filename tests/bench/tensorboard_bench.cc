// Measures how long TensorBoardFile takes to write one million scalars to the disk. Ends with 1 from 2 s on.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/lib/tensorboard_file.h"

int main() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tandem-tb-XXXXXX").string();
  const std::string folder = mkdtemp(pattern.data());
  tandem::v1::JobEvent event;
  // A report has four scalars: loss, accuracy, learning rate and images per second.
  tandem::v1::Progress& progress = *event.mutable_progress();
  (*progress.mutable_training()->mutable_metrics())["accuracy"] = 0.5;
  const auto begin = std::chrono::steady_clock::now();
  absl::Status status;
  {
    auto file = tandem::client::TensorBoardFile::Open(absl::StrCat(folder, "/events"), {}, "");
    status = file.status();
    for (int i = 1; status.ok() && i <= 250'000; ++i) {
      event.set_sequence(i);
      progress.set_step(i);
      progress.mutable_training()->set_loss(1.0 / i);
      status = (*file)->Add(event);
    }
    if (status.ok()) status = (*file)->Sync();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const auto size = status.ok() ? std::filesystem::file_size(folder + "/events") : 0;
  std::filesystem::remove_all(folder);
  std::printf("1,000,000 scalars, %.1f MB: %.2f s %s\n", static_cast<double>(size) / 1e6, taken.count(),
              status.ToString().c_str());
  return status.ok() && taken.count() < 2 ? 0 : 1;
}
