#include "engine/base/foreign_format.h"

#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

std::string Zip(const std::string& member) {
  return std::string("PK\x03\x04", 4) + std::string(26, 'x') + member;
}

TEST(ForeignFormatTest, NamesFormatAndMend) {
  const std::pair<std::string, const char*> cases[] = {
      {Zip("archive/data.pkl"), "a PyTorch file"},
      {std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15), "a PyTorch file"},
      {Zip("[Content_Types].xml word/document.xml"), "a Word document"},
      {Zip("[Content_Types].xml xl/workbook.xml"), "an Excel workbook"},
      {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
      {"PAR1\x15", "a Parquet file"},
      {"MATLAB 5.0 MAT-file, Platform: GLNXA64", "a MATLAB file"},
      {"MATLAB 7.3 MAT-file, Platform: GLNXA64", "a MATLAB file"},
      {std::string("\x0a\x23\xd7\xce\x18\0\0\0", 8), "a RecordIO file"},
      {std::string("7z\xbc\xaf\x27\x1c\0\x04", 8), "a 7z archive"},
      {std::string("\x80\x04\x95\x10\0", 5), "a Python pickle"},
      {std::string("\x08\x07\x12\x07pytorch\x1a", 12), "an ONNX model"},
      {"BZh91AY&SY", "compressed by bzip2"},
      {std::string("\x28\xb5\x2f\xfd\x24", 5), "compressed by zstd"},
      {"\n<!DOCTYPE html>", "a web page"},
  };
  for (const auto& [begin, name] : cases) {
    SCOPED_TRACE(name);
    EXPECT_THAT(ForeignDataFault(begin), HasSubstr(name));
    EXPECT_THAT(ForeignDataFault(begin), HasSubstr("which Tandem does not read; "));
    EXPECT_THAT(ForeignWeightsFault(begin), HasSubstr("which Tandem does not read; "));
  }
  EXPECT_THAT(ForeignWeightsFault(Zip("archive/data.pkl")), HasSubstr("safetensors.torch.save_file"));
  EXPECT_THAT(ForeignDataFault("MATLAB 7.3 MAT-file"), HasSubstr("h5py.File"));
  EXPECT_THAT(ForeignWeightsFault(Zip("x.npy")), HasSubstr("a zip archive"));
}

TEST(ForeignFormatTest, LeavesOtherFilesAlone) {
  for (const std::string& begin :
       {std::string(), std::string("a,b\n1,2\n"), Zip("x.npy"), std::string("\x93NUMPY"),
        std::string("\x1f\x8b"), std::string(512, '\0'), std::string("\x80\x02", 2), std::string("PK"),
        std::string("BZh money,price\n"), std::string("\x08\x01\x12\x7f")}) {
    EXPECT_EQ(ForeignDataFault(begin), "");
  }
  EXPECT_EQ(ForeignFileFault("/nonexistent"), "");
  EXPECT_EQ(ForeignFileFault("/dev/null"), "");
  const std::string path = ::testing::TempDir() + "/a.parquet";
  std::ofstream(path) << "PAR1" << std::string(10, '\0');
  EXPECT_THAT(ForeignFileFault(path), HasSubstr("pandas.read_parquet"));
}

}  // namespace
}  // namespace tandem
