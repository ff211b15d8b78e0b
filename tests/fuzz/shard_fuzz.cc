// Shards of pictures: tar archives with pictures and labels.

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  // A BMP file of a pixel.
  const std::string picture = "BM" + Little(58, 4) + Little(0, 4) + Little(54, 4) + Little(40, 4) +
                              Little(1, 4) + Little(1, 4) + Little(1, 2) + Little(24, 2) +
                              std::string(24, '\0') + "rgb.";
  return {Tar({{"a/1.bmp", picture},
               {"a/1.cls", "0"},
               {"a/2.cls", "1"},
               {"a/2.json", "{}"},
               {"a/2.bmp", picture}}),
          Tar({{"1.bmp", picture}}), Tar({{"1.cls", "7"}, {"1.bmp", "BM"}})};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = tandem::WriteInput("shard", {reinterpret_cast<const char*>(data), size});
  tandem::v1::DatasetSpec spec;
  spec.mutable_webdataset()->set_train(path);
  tandem::OpenAndRead(spec);
  spec.mutable_webdataset()->set_height(2);
  spec.mutable_webdataset()->set_width(2);
  spec.mutable_webdataset()->set_channels(1);
  tandem::OpenAndRead(spec);
  return 0;
}
