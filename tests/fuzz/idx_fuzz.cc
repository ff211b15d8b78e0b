// IDX files: images and labels, plain and compressed.

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  const std::string images = std::string("\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02", 16) + "abcdefghijkl";
  const std::string labels = std::string("\0\0\x08\x01\0\0\0\x03\0\x01\x02", 11);
  return {JoinFiles({images, labels}), JoinFiles({Gzipped(images), Gzipped(labels)}),
          JoinFiles({Xzipped(images), labels})};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<absl::string_view> files =
      tandem::SplitFiles({reinterpret_cast<const char*>(data), size}, 2);
  tandem::v1::DatasetSpec spec;
  spec.mutable_idx()->set_train_images(tandem::WriteInput("images", files[0]));
  spec.mutable_idx()->set_train_labels(tandem::WriteInput("labels", files[1]));
  tandem::OpenAndRead(spec);
  return 0;
}
