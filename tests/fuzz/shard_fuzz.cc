// Shards of pictures: tar archives with pictures and labels. The checksums of POSIX headers are mended, so
// that other changes of a header reach the reader.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {
namespace {

constexpr size_t kBlock = 512;

std::string WithChecksums(std::string tar) {
  for (size_t at = 0; at + kBlock <= tar.size(); at += kBlock) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    tar.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += static_cast<uint8_t>(tar[at + i]);
    tar.replace(at + 148, 6, absl::StrFormat("%06o", sum));
  }
  return tar;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string picture = PixelBmp();
  // The first member names the second: as GNU does, and in a pax header.
  std::string gnu = Tar({{"long", "a/3.bmp"}, {"cut", picture}, {"a/3.cls", "2"}});
  gnu[156] = 'L';
  std::string pax = Tar({{"pax", "16 path=a/3.bmp\n11 size=58\n"}, {"cut", picture}, {"a/3.cls", "2"}});
  pax[156] = 'x';
  return {Tar({{"a/1.bmp", picture},
               {"a/1.cls", "0"},
               {"a/2.cls", "1"},
               {"a/2.json", "{}"},
               {"a/2.bmp", picture}}),
          Tar({{"1.bmp", picture}}), Tar({{"1.cls", "7"}, {"1.bmp", "BM"}}), std::move(gnu), std::move(pax)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string tar = tandem::WithChecksums({reinterpret_cast<const char*>(data), size});
  const std::string path = tandem::WriteInput("shard", tar);
  tandem::v1::DatasetSpec spec;
  spec.mutable_webdataset()->set_train(path);
  tandem::OpenAndRead(spec);
  spec.mutable_webdataset()->set_height(2);
  spec.mutable_webdataset()->set_width(2);
  spec.mutable_webdataset()->set_channels(1);
  tandem::OpenAndRead(spec);
  return 0;
}
