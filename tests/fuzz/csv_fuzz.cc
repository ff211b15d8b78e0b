// Tables: CSV files for training and validation, read with different settings. The first byte says which.

#include <string>

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
      "p" + JoinFiles({"age;day;port;y\n1,5;2024-05-31 12:30;S;1\n;05/31/2024;NA;2\n?;;S;3\n4;;C;4\n",
                       "age;day;port;y\n2;2024-05-31;Q;1\n"}),
      "p" + JoinFiles({"sep=;\na;b\n1;2\n", ""}),
      "q" + JoinFiles({std::string("\xFF\xFE"
                                   "a\0,\0y\0\n\0001\0,\0002\0\n\0",
                                   18),
                       ""}),
      "s" + JoinFiles({"# note\na,t,y\n1,1,x\n2,2,z\n3,3,x\n4,4,z\n", ""}),
      "g" + JoinFiles({"a,g,y\n1,u,x\n2,u,z\n3,v,x\n4,v,z\n", ""}),
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
    case 'p':
      break;
    case 'q':
      csv->set_scaling(tandem::v1::NUMBER_SCALING_QUANTILES);
      csv->set_missing(tandem::v1::MISSING_VALUES_MOST_FREQUENT);
      csv->set_target_scaling(tandem::v1::NUMBER_SCALING_STANDARD);
      csv->add_missing_texts("-");
      break;
    case 's':
      csv->set_encoding(tandem::v1::TEXT_ENCODING_LATIN1);
      spec.mutable_validation_split()->set_fraction(0.5);
      spec.mutable_validation_split()->set_stratified(true);
      break;
    case 'g':
      csv->set_quote("'");
      csv->add_columns()->set_name("a");
      csv->mutable_columns(0)->set_kind(tandem::v1::COLUMN_KIND_CATEGORY);
      spec.mutable_validation_split()->set_fraction(0.5);
      spec.mutable_validation_split()->set_group_column("g");
      break;
    default:
      csv->set_targets(tandem::v1::TARGET_KIND_CLASS);
  }
  tandem::OpenAndRead(spec);
  return 0;
}
