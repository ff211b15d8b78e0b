// Tables: CSV files for training and validation, read with different settings. The first byte says which.

#include "absl/strings/str_cat.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  const std::string table = "a,b,\"the, class\"\n1,2.5,0\n-3e4,\"4\",1\n.5,1e-3,1\n";
  return {
      "c" + JoinFiles({table, "a,b,\"the, class\"\r\n1,2,1\r\n"}),
      "v" + JoinFiles({table, ""}),
      "n" + JoinFiles({"1;2;0\n3;4;1\n", "1;2;1"}),
  };
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tandem::v1::CsvSource;
  if (size == 0) return 0;
  const std::vector<absl::string_view> files =
      tandem::SplitFiles({reinterpret_cast<const char*>(data) + 1, size - 1}, 2);
  tandem::v1::DatasetSpec spec;
  CsvSource* csv = spec.mutable_csv();
  csv->set_train(tandem::WriteInput("train.csv", files[0]));
  if (!files[1].empty()) csv->set_validation(tandem::WriteInput("validation.csv", files[1]));
  switch (data[0]) {
    case 'n':
      csv->set_header(false);
      csv->set_delimiter(";");
      break;
    case 'v':
      csv->set_targets(tandem::v1::TARGET_KIND_VALUES);
      csv->add_target_columns("a");
      csv->add_target_columns("b");
      break;
    default:
      csv->set_targets(tandem::v1::TARGET_KIND_CLASS);
  }
  tandem::OpenAndRead(spec);
  return 0;
}
