// Archives of pictures, and compressed tables: zip, tar, gzip, xz, zstd, bzip2.

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  const std::string picture = PixelBmp();
  const std::vector<std::pair<std::string, std::string>> pictures = {
      {"pets/train/cat/1.bmp", picture}, {"pets/train/dog/1.bmp", picture}, {"pets/val/dog/1.bmp", picture}};
  const std::string table = "a,b\n1,2\n3,4\n";
  return {Zip(pictures, false),
          Zip(pictures, true),
          Tar(pictures),
          Zstded(Tar(pictures)),
          Bzipped(Tar(pictures)),
          Gzipped(Tar(pictures)),
          Zstded(table),
          Bzipped(table),
          Xzipped(table),
          Gzipped(table),
          Zip({{"a.csv", table}}, false)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = tandem::WriteInput("archive", {reinterpret_cast<const char*>(data), size});
  tandem::v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(path);
  tandem::OpenAndRead(spec);
  spec.mutable_csv()->set_train(path);
  tandem::OpenAndRead(spec);
  return 0;
}
