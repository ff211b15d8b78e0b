#include "engine/base/foreign_format.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

constexpr char kSaveArrays[] = "save its arrays with numpy.save, or its table with pandas.DataFrame.to_csv";
constexpr char kConvertPytorch[] =
    "convert it where PyTorch is installed: safetensors.torch.save_file(torch.load(FILE, weights_only=True), "
    "\"weights.safetensors\")";
constexpr char kConvertTable[] = "save it as CSV: pandas.read_excel(FILE).to_csv(\"table.csv\", index=False)";

// A format by its first bytes.
struct Magic {
  absl::string_view bytes;
  const char* name;
  const char* data_mend;
  const char* weights_mend;  // Null: no weights are kept so.
};

constexpr Magic kMagics[] = {
    {{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14},
     "a PyTorch file",
     "save its tensors with numpy.save(FILE, tensor.numpy())",
     kConvertPytorch},
    {{"\x89HDF\r\n\x1a\n", 8},
     "an HDF5 file",
     "save its arrays with numpy.save(FILE, h5py.File(...)[NAME][()])",
     "save its weights with safetensors.numpy.save_file"},
    {"PAR1", "a Parquet file", "save it as CSV: pandas.read_parquet(FILE).to_csv(\"table.csv\", index=False)",
     nullptr},
    {"ARROW1", "an Arrow file",
     "save it as CSV: pandas.read_feather(FILE).to_csv(\"table.csv\", index=False)", nullptr},
    {"FEA1", "a Feather file", "save it as CSV: pandas.read_feather(FILE).to_csv(\"table.csv\", index=False)",
     nullptr},
    {{"7z\xbc\xaf\x27\x1c", 6}, "a 7z archive", "unpack it: 7z x FILE", "unpack it: 7z x FILE"},
    {{"Rar!\x1a\x07", 6}, "a RAR archive", "unpack it: unrar x FILE", "unpack it: unrar x FILE"},
    {{"\x28\xb5\x2f\xfd", 4},
     "compressed by zstd",
     "decompress it: zstd -d FILE",
     "decompress it: zstd -d FILE"},
    {{"\x04\x22\x4d\x18", 4},
     "compressed by lz4",
     "decompress it: lz4 -d FILE",
     "decompress it: lz4 -d FILE"},
    {{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8}, "an old Excel or Word file", kConvertTable, nullptr},
    {"%PDF-", "a PDF file", "save its text or table as a file of its own", nullptr},
    {"SQLite format 3", "an SQLite database",
     "save a table as CSV: sqlite3 -header -csv FILE \"select * from TABLE\"", nullptr},
    {"MATLAB 5.0 MAT-file", "a MATLAB file",
     "save its arrays with numpy.save(FILE, scipy.io.loadmat(...)[NAME])", nullptr},
    // An HDF5 file behind a text of 512 bytes. MATLAB's first extent is the file's last.
    {"MATLAB 7.3 MAT-file", "a MATLAB file",
     "save its arrays with numpy.save(FILE, h5py.File(...)[NAME][()].T)", nullptr},
    // The magic number 0xced7230a of MXNet's im2rec.
    {"\x0a\x23\xd7\xce", "a RecordIO file",
     "save its pictures in a folder for each class: mxnet.recordio.MXRecordIO and unpack read them", nullptr},
    {"GGUF", "a GGUF file", kSaveArrays, "use the safetensors file of the same model"},
};

// Returns the magic number with which `begin` begins, or null.
const Magic* FindMagic(absl::string_view begin) {
  const auto* const found = std::find_if(std::begin(kMagics), std::end(kMagics), [&](const Magic& magic) {
    return absl::StartsWith(begin, magic.bytes);
  });
  return found == std::end(kMagics) ? nullptr : found;
}

bool IsBzip2(absl::string_view begin) {
  return begin.size() >= 10 && absl::StartsWith(begin, "BZh") && absl::ascii_isdigit(begin[3]) &&
         begin.substr(4, 6) == "1AY&SY";
}

// Returns whether the bytes are a pickle of protocol 2 to 5.
bool IsPickle(absl::string_view begin) {
  return begin.size() >= 3 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5 &&
         absl::StrContains("c}](K.\x8a\x95", begin.substr(2, 1));
}

// ONNX has no magic number: ir_version, then the producer's name.
bool IsOnnx(absl::string_view begin) {
  if (begin.size() < 8 || begin[0] != '\x08' || begin[1] < 1 || begin[1] > 20 || begin[2] != '\x12')
    return false;
  const auto length = static_cast<size_t>(begin[3]);
  if (length < 2 || length > 60 || begin.size() < 4 + length) return false;
  const absl::string_view producer = begin.substr(4, length);
  return std::all_of(producer.begin(), producer.end(), [](char c) { return absl::ascii_isprint(c); });
}

bool IsHtml(absl::string_view begin) {
  const std::string start = absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(begin.substr(0, 200)));
  return absl::StartsWith(start, "<!doctype html") || absl::StartsWith(start, "<html");
}

bool IsZip(absl::string_view begin) { return absl::StartsWith(begin, "PK\x03\x04"); }
bool IsPytorchZip(absl::string_view begin) {
  return IsZip(begin) && (absl::StrContains(begin, "/data.pkl") || absl::StrContains(begin, "/.data/") ||
                          absl::StrContains(begin, "/byteorder"));
}
bool IsOfficeZip(absl::string_view begin) {
  return IsZip(begin) && absl::StrContains(begin, "[Content_Types].xml");
}

std::string Fault(absl::string_view name, absl::string_view mend) {
  return absl::StrCat("is ", name, ", which Tandem does not read; ", mend);
}

}  // namespace

std::string ForeignDataFault(absl::string_view begin) {
  if (const Magic* const magic = FindMagic(begin); magic != nullptr)
    return Fault(magic->name, magic->data_mend);
  if (IsBzip2(begin)) return Fault("compressed by bzip2", "decompress it: bunzip2 FILE");
  if (IsPytorchZip(begin)) {
    return Fault("a PyTorch file", "save its tensors with numpy.save(FILE, tensor.numpy())");
  }
  if (IsOfficeZip(begin)) {
    return absl::StrContains(begin, "word/")
               ? Fault("a Word document", "save its text as a plain text file")
               : Fault("an Office document, such as an Excel workbook", kConvertTable);
  }
  if (IsZip(begin) && absl::StrContains(begin, "metadata.json") && absl::StrContains(begin, "config.json")) {
    return Fault("a Keras model", kSaveArrays);
  }
  if (IsPickle(begin)) return Fault("a Python pickle", kSaveArrays);
  if (IsOnnx(begin)) return Fault("an ONNX model", "give a file of data");
  if (IsHtml(begin)) return Fault("a web page", "download the file itself; the page may ask for a login");
  return "";
}

std::string ForeignWeightsFault(absl::string_view begin) {
  const Magic* const magic = FindMagic(begin);
  if (magic != nullptr && magic->weights_mend != nullptr) return Fault(magic->name, magic->weights_mend);
  if (IsPytorchZip(begin)) return Fault("a PyTorch file", kConvertPytorch);
  if (IsPickle(begin)) {
    return Fault("a Python pickle", "save its weights with safetensors.numpy.save_file(ARRAYS, FILE)");
  }
  if (IsOnnx(begin)) {
    return Fault(
        "an ONNX model",
        "save its initializers with safetensors.numpy.save_file, under the names of the network's layers");
  }
  if (IsZip(begin))
    return Fault("a zip archive", "save its arrays with safetensors.numpy.save_file(ARRAYS, FILE)");
  return ForeignDataFault(begin);
}

std::string ForeignFileFault(const std::string& path) {
  // Opening a named pipe would block.
  struct stat stat;
  if (::stat(path.c_str(), &stat) != 0 || !S_ISREG(stat.st_mode)) return "";
  std::ifstream stream(path, std::ios::binary);
  std::string begin(kForeignFormatBytes, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(std::max<std::streamsize>(0, stream.gcount()));
  return ForeignDataFault(begin);
}

}  // namespace tandem
