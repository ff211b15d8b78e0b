// CIFAR's files: records and archives of records, compressed or not. The first byte chooses the variant.

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  std::string ten, hundred;
  for (int record = 0; record < 2; ++record) {
    ten += std::string(1, static_cast<char>(record)) + std::string(3072, 'p');
    hundred += std::string(2, static_cast<char>(record)) + std::string(3072, 'p');
  }
  return {"t" + ten, "t" + Gzipped(ten), "h" + hundred, "h" + Xzipped(hundred)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string path =
      tandem::WriteInput("records.bin", {reinterpret_cast<const char*>(data) + 1, size - 1});
  tandem::v1::DatasetSpec spec;
  tandem::v1::CifarSource* cifar = spec.mutable_cifar();
  cifar->set_variant(data[0] == 'h' ? tandem::v1::CIFAR_VARIANT_CIFAR100 : tandem::v1::CIFAR_VARIANT_CIFAR10);
  cifar->add_train(path);
  tandem::OpenAndRead(spec);
  // Also reads the same bytes as an archive of all files.
  spec.Clear();
  spec.mutable_cifar()->set_path(
      tandem::WriteInput("cifar.tar.gz", {reinterpret_cast<const char*>(data) + 1, size - 1}));
  tandem::OpenAndRead(spec);
  return 0;
}
