#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_FIXTURE_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_FIXTURE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/testing/from_text.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "gtest/gtest.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A fixture for tests of tables: a test's folder with a training table.
class CsvFixture : public ::testing::Test {
 protected:
  // Writes the training table. `csv` has fields of the CsvSource, and `more` of the DatasetSpec, in text
  // form.
  v1::DatasetSpec Spec(const std::string& table, const std::string& csv = "", const std::string& more = "") {
    v1::DatasetSpec spec = FromText<v1::DatasetSpec>("csv { " + csv + " } " + more);
    spec.mutable_csv()->set_train(WriteFile(folder_ + "/table.csv", table));
    return spec;
  }
  OpenedDataset Open(const v1::DatasetSpec& spec, const DataNames* model = nullptr) {
    absl::StatusOr<OpenedDataset> opened = OpenDataset(spec, model);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : OpenedDataset();
  }
  const std::string folder_ = FreshFolder();
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_FIXTURE_H_
