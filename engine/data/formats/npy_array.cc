#include "engine/data/formats/npy_array.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/foreign_format.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/zip.h"

namespace tandem {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
// The longest header. NumPy also refuses longer headers.
constexpr int64_t kMaxHeader = 1 << 16;
// A multiple of the bytes of every element type.
constexpr int64_t kPieceBytes = int64_t{1} << 20;
// The most member names in a message.
constexpr size_t kShownNames = 20;

absl::Status Error(const std::string& what, const std::string& fault) {
  return absl::InvalidArgumentError(absl::StrCat(what, " ", fault));
}

// Returns the text after a key of the header's dictionary, up to the dictionary's end.
absl::string_view ValueOf(absl::string_view dictionary, absl::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = absl::StrCat(std::string(1, quote), key, std::string(1, quote));
    const size_t at = dictionary.find(quoted);
    if (at == absl::string_view::npos) continue;
    absl::string_view rest = absl::StripLeadingAsciiWhitespace(dictionary.substr(at + quoted.size()));
    if (rest.empty() || rest.front() != ':') return {};
    return absl::StripLeadingAsciiWhitespace(rest.substr(1));
  }
  return {};
}

absl::StatusOr<Shape> ParseShape(const std::string& what, absl::string_view value) {
  const size_t end = value.find(')');
  if (value.empty() || value.front() != '(' || end == absl::string_view::npos) {
    return Error(what, "has a header without a shape");
  }
  std::vector<int64_t> extents;
  int64_t elements = 1;
  for (absl::string_view part : absl::StrSplit(value.substr(1, end - 1), ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    // NumPy on Python 2 wrote "20L".
    if (part.back() == 'L') part.remove_suffix(1);
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 0 || extents.size() >= 32) {
      return Error(what, "has a header with a shape that is none");
    }
    if (extent > 0 && elements > kMaxDatasetBytes / extent) {
      return Error(what,
                   absl::StrCat("announces more than the ", kMaxDatasetBytes, " bytes that can be read"));
    }
    elements *= std::max<int64_t>(1, extent);
    extents.push_back(extent);
  }
  return Shape(std::move(extents));
}

// Checks that the path is a regular file. Returns its length.
absl::StatusOr<int64_t> CheckPlain(const std::string& path) {
  struct stat stat;
  if (::stat(path.c_str(), &stat) != 0 || !S_ISREG(stat.st_mode)) {
    return Error(path, "cannot be opened, or is not a regular file");
  }
  if (stat.st_size > kMaxDatasetBytes + kMaxHeader) {
    return Error(path, absl::StrCat("has ", stat.st_size, " bytes, more than the ", kMaxDatasetBytes,
                                    " that can be read"));
  }
  return static_cast<int64_t>(stat.st_size);
}

absl::StatusOr<NpyFile> ReadPlainHeader(const v1::NpyArray& array) {
  NpyFile file{.what = array.path(), .header = {}};
  TANDEM_ASSIGN_OR_RETURN(const int64_t bytes, CheckPlain(array.path()));
  std::ifstream stream(array.path(), std::ios::binary);
  std::string begin(std::min(kMaxHeader + 16, bytes), '\0');
  if (!stream.read(begin.data(), static_cast<std::streamsize>(begin.size()))) {
    return Error(file.what, "cannot be read, or became shorter meanwhile");
  }
  TANDEM_ASSIGN_OR_RETURN(file.header, ParseNpyHeader(file.what, begin));
  const int64_t expected = file.header.shape.elements() * file.header.item_bytes;
  const int64_t found = bytes - file.header.data_at;
  if (found != expected) {
    return Error(file.what,
                 absl::StrCat(found < expected ? "is truncated" : "is longer than its header announces",
                              ": its header announces ", file.header.descr, " ", file.header.shape.ToString(),
                              ", ", expected, " bytes, and ", found, " follow"));
  }
  return file;
}

absl::Status ReadPlain(const NpyFile& file, const std::string& path,
                       absl::FunctionRef<absl::Status(absl::string_view)> use) {
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(file.header.data_at);
  std::string piece(kPieceBytes, '\0');
  for (int64_t left = file.header.shape.elements() * file.header.item_bytes; left > 0;) {
    const int64_t wanted = std::min(left, kPieceBytes);
    if (!stream.read(piece.data(), wanted)) {
      return Error(file.what, "cannot be read, or became shorter meanwhile");
    }
    TANDEM_RETURN_IF_ERROR(use(absl::string_view(piece).substr(0, wanted)));
    left -= wanted;
  }
  return absl::OkStatus();
}

// Returns the requested member of an archive.
absl::StatusOr<const ZipMember*> FindMember(const v1::NpyArray& array, const ZipFile& zip) {
  std::vector<std::string> names;
  const ZipMember* found = nullptr;
  for (const ZipMember& member : zip.members()) {
    absl::string_view name = member.name;
    if (!absl::EndsWith(name, ".npy")) continue;
    name.remove_suffix(4);
    if (names.size() <= kShownNames) names.push_back(names.size() < kShownNames ? ToUtf8(name) : "...");
    if (array.member() == name || array.member() == member.name || array.member().empty()) found = &member;
  }
  if (names.empty()) {
    // PyTorch's files and Office documents are archives too.
    if (const std::string fault = ForeignFileFault(array.path()); !fault.empty())
      return Error(array.path(), fault);
  }
  if (found == nullptr || (array.member().empty() && names.size() > 1)) {
    const std::string has = names.empty() ? "it has no arrays" : "it has " + absl::StrJoin(names, ", ");
    return Error(array.path(),
                 array.member().empty()
                     ? absl::StrCat("is an archive; give the member that is meant: ", has)
                     : absl::StrCat("has no member '", absl::CHexEscape(array.member()), "'; ", has));
  }
  return found;
}

absl::StatusOr<NpyFile> ReadMemberHeader(const v1::NpyArray& array) {
  TANDEM_ASSIGN_OR_RETURN(const ZipFile zip, ZipFile::Open(array.path()));
  TANDEM_ASSIGN_OR_RETURN(const ZipMember* const member, FindMember(array, zip));
  NpyFile file{.what = absl::StrCat(array.path(), ": ", ToUtf8(member->name)), .header = {}};
  if (member->bytes > kMaxDatasetBytes + kMaxHeader) {
    return Error(file.what, absl::StrCat("has more than the ", kMaxDatasetBytes, " bytes that can be read"));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::string begin, zip.Read(*member, kMaxHeader + 16));
  TANDEM_ASSIGN_OR_RETURN(file.header, ParseNpyHeader(file.what, begin));
  const int64_t expected = file.header.data_at + file.header.shape.elements() * file.header.item_bytes;
  if (member->bytes != expected) {
    return Error(file.what, absl::StrCat("has ", member->bytes, " bytes, but its header announces ",
                                         file.header.descr, " ", file.header.shape.ToString()));
  }
  return file;
}

absl::Status ReadMember(const v1::NpyArray& array, const NpyFile& file,
                        absl::FunctionRef<absl::Status(absl::string_view)> use) {
  TANDEM_ASSIGN_OR_RETURN(const ZipFile zip, ZipFile::Open(array.path()));
  TANDEM_ASSIGN_OR_RETURN(const ZipMember* const member, FindMember(array, zip));
  // The archive is opened again, and may have been replaced.
  const auto changed = [&file] { return Error(file.what, "changed while it was read"); };
  int64_t skipped = file.header.data_at;
  int64_t left = file.header.shape.elements() * file.header.item_bytes;
  if (member->bytes != skipped + left) return changed();
  std::string rest;  // An incomplete element, which the next piece completes.
  TANDEM_RETURN_IF_ERROR(zip.ReadPieces(*member, [&](absl::string_view piece) -> absl::Status {
    const auto skips = std::min(skipped, static_cast<int64_t>(piece.size()));
    piece.remove_prefix(skips);
    skipped -= skips;
    absl::StrAppend(&rest, piece);
    const size_t whole = rest.size() - rest.size() % file.header.item_bytes;
    if (whole == 0) return absl::OkStatus();
    left -= static_cast<int64_t>(whole);
    if (left < 0) return changed();
    TANDEM_RETURN_IF_ERROR(use(absl::string_view(rest).substr(0, whole)));
    rest.erase(0, whole);
    return absl::OkStatus();
  }));
  return left == 0 ? absl::OkStatus() : changed();
}

// INVALID_ARGUMENT if a member is requested of a file that is no archive.
absl::StatusOr<bool> IsArchive(const v1::NpyArray& array) {
  // Opening a named pipe would block.
  struct stat stat;
  if (::stat(array.path().c_str(), &stat) != 0 || !S_ISREG(stat.st_mode)) return false;
  std::ifstream stream(array.path(), std::ios::binary);
  char magic[4] = {};
  stream.read(magic, 4);
  if (stream.gcount() == 4 && absl::string_view(magic, 2) == "PK") return true;
  if (!array.member().empty() && stream.gcount() == 4) {
    return Error(array.path(), absl::StrCat("is no NPZ archive, so it has no member '",
                                            absl::CHexEscape(array.member()), "'"));
  }
  return false;
}

// Visits the elements of a sample in Fortran order, and gives each element's place in C order.
class FortranOrder {
 public:
  explicit FortranOrder(const Shape& shape)
      : extents_(shape.extents().begin() + 1, shape.extents().end()),
        strides_(extents_.size()),
        index_(extents_.size()) {
    int64_t stride = 1;
    for (size_t axis = extents_.size(); axis-- > 0; stride *= extents_[axis]) strides_[axis] = stride;
  }
  int64_t place() const { return place_; }
  void Next() {
    for (size_t axis = 0; axis < extents_.size(); ++axis) {
      place_ += strides_[axis];
      if (++index_[axis] < extents_[axis]) return;
      place_ -= extents_[axis] * strides_[axis];
      index_[axis] = 0;
    }
  }

 private:
  const std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> index_;
  int64_t place_ = 0;
};

// Gathers the samples [first, first + count) of an array in Fortran order. In the file, a column has one
// element of each sample, and columns follow each other.
class FortranBlock {
 public:
  FortranBlock(const NpyHeader& header, int64_t first, int64_t count)
      : item_(header.item_bytes),
        samples_(header.shape[0]),
        first_(first),
        count_(count),
        sample_bytes_(header.shape.elements() / samples_ * item_),
        order_(header.shape),
        elements_(count * sample_bytes_, '\0') {}

  // Takes the file's next elements.
  void Add(absl::string_view piece) {
    while (!piece.empty()) {
      const int64_t here = std::min(samples_ - sample_, static_cast<int64_t>(piece.size()) / item_);
      const int64_t begin = std::max(sample_, first_), end = std::min(sample_ + here, first_ + count_);
      if (begin < end) Put(begin - first_, piece.substr((begin - sample_) * item_, (end - begin) * item_));
      piece.remove_prefix(here * item_);
      sample_ += here;
      if (sample_ < samples_) return;
      sample_ = 0;
      order_.Next();
    }
  }
  // Takes the block's part of the file's next column.
  void AddColumn(absl::string_view part) {
    Put(0, part);
    order_.Next();
  }
  std::string& elements() { return elements_; }

 private:
  // Stores elements of the present column, from sample `sample` of the block on.
  void Put(int64_t sample, absl::string_view part) {
    char* to = elements_.data() + sample * sample_bytes_ + order_.place() * item_;
    const char* from = part.data();
    const int64_t count = static_cast<int64_t>(part.size()) / item_;
    switch (item_) {
      case 1:
        return Copy<1>(from, count, to);
      case 2:
        return Copy<2>(from, count, to);
      case 4:
        return Copy<4>(from, count, to);
      default:
        return Copy<8>(from, count, to);
    }
  }
  template <int kBytes>
  void Copy(const char* from, int64_t count, char* to) const {
    for (int64_t i = 0; i < count; ++i, from += kBytes, to += sample_bytes_) std::memcpy(to, from, kBytes);
  }

  const int64_t item_;
  const int64_t samples_;
  const int64_t first_;
  const int64_t count_;
  const int64_t sample_bytes_;
  FortranOrder order_;
  int64_t sample_ = 0;  // Of the next element in the file.
  std::string elements_;
};

// Returns whether the order of elements differs from C order.
bool IsReordered(const NpyHeader& header) {
  return header.fortran_order && header.shape.rank() > 1 && header.shape.elements() > 0;
}

// Swaps the bytes of each big-endian element.
void SwapBytes(const NpyHeader& header, std::string* elements) {
  if (!header.big_endian || header.item_bytes == 1) return;
  for (auto at = elements->begin(); at != elements->end(); at += header.item_bytes) {
    std::reverse(at, at + header.item_bytes);
  }
}

// Fills the block from an NPY file. Reads the block's samples alone.
absl::Status ReadColumns(const NpyFile& file, const std::string& path, int64_t first, int64_t count,
                         FortranBlock& block) {
  const NpyHeader& header = file.header;
  const int64_t samples = header.shape[0];
  std::ifstream stream(path, std::ios::binary);
  std::string part(count * header.item_bytes, '\0');
  for (int64_t column = 0; column < header.shape.elements() / samples; ++column) {
    stream.seekg(header.data_at + (column * samples + first) * header.item_bytes);
    if (!stream.read(part.data(), static_cast<std::streamsize>(part.size()))) {
      return Error(file.what, "cannot be read, or became shorter meanwhile");
    }
    block.AddColumn(part);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& what, absl::string_view begin) {
  if (begin.size() < 10 || !absl::StartsWith(begin, kMagic)) {
    const std::string fault = ForeignDataFault(begin.substr(0, kForeignFormatBytes));
    return Error(what, !fault.empty() ? fault : "is not an NPY file: it does not begin with \\x93NUMPY");
  }
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<uint8_t>(begin[i])); };
  const int64_t version = byte(6);
  if (version < 1 || version > 3) {
    return Error(what, absl::StrCat("is of NPY version ", version, "; only 1 to 3 can be read"));
  }
  NpyHeader header;
  const int64_t prefix = version == 1 ? 10 : 12;
  if (static_cast<int64_t>(begin.size()) < prefix)
    return Error(what, "is truncated: it ends within its header");
  int64_t size = byte(8) | byte(9) << 8;
  if (version > 1) size |= byte(10) << 16 | byte(11) << 24;
  header.data_at = prefix + size;
  if (size > kMaxHeader || header.data_at > static_cast<int64_t>(begin.size())) {
    return Error(what, "is truncated, or damaged: it ends within its header");
  }
  const absl::string_view dictionary = begin.substr(prefix, size);
  const absl::string_view descr = ValueOf(dictionary, "descr");
  if (descr.size() < 2 || (descr.front() != '\'' && descr.front() != '"')) {
    return Error(what, absl::StrCat("holds records of several fields, not numbers: its dtype is ",
                                    absl::CHexEscape(descr.substr(0, 60)),
                                    "; save its fields as the columns of an array, or as a CSV table"));
  }
  header.descr = std::string(descr.substr(1, descr.find(descr.front(), 1) - 1));
  const std::string dtype = absl::CHexEscape(header.descr.substr(0, 20));
  int64_t bytes = 0;
  if (header.descr.size() < 3 || !absl::SimpleAtoi(header.descr.substr(2), &bytes)) bytes = 0;
  header.kind = header.descr.size() > 1 ? header.descr[1] : 0;
  header.item_bytes = bytes;
  const bool number = (header.kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8)) ||
                      ((header.kind == 'i' || header.kind == 'u') &&
                       (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) ||
                      (header.kind == 'b' && bytes == 1);
  if (!number) {
    return Error(what, absl::StrCat("has dtype '", dtype, "'",
                                    header.kind == 'O'                         ? ", Python objects"
                                    : header.kind == 'U' || header.kind == 'S' ? ", text"
                                                                               : "",
                                    "; it must be a boolean, an integer or a float of 16, 32 or 64 bits: ",
                                    header.kind == 'U' || header.kind == 'S'
                                        ? "numpy.unique(array, return_inverse=True)[1] numbers the texts"
                                        : "save array.astype('float32')"));
  }
  header.big_endian = header.descr[0] == '>';
  header.fortran_order = absl::StartsWith(ValueOf(dictionary, "fortran_order"), "True");
  TANDEM_ASSIGN_OR_RETURN(header.shape, ParseShape(what, ValueOf(dictionary, "shape")));
  if (header.shape.elements() > kMaxDatasetBytes / bytes) {
    return Error(what, absl::StrCat("announces more than the ", kMaxDatasetBytes, " bytes that can be read"));
  }
  return header;
}

absl::StatusOr<NpyFile> ReadNpyHeader(const v1::NpyArray& array) {
  TANDEM_ASSIGN_OR_RETURN(const bool is_archive, IsArchive(array));
  return is_archive ? ReadMemberHeader(array) : ReadPlainHeader(array);
}

absl::Status ReadNpyElements(const v1::NpyArray& array, const NpyFile& known,
                             absl::FunctionRef<absl::Status(absl::string_view elements)> use) {
  TANDEM_ASSIGN_OR_RETURN(const NpyFile file, ReadNpyHeader(array));
  if (file.header.descr != known.header.descr || file.header.shape != known.header.shape) {
    return Error(file.what, "changed while it was read");
  }
  TANDEM_ASSIGN_OR_RETURN(const bool is_archive, IsArchive(array));
  const NpyHeader& header = file.header;
  const auto read = [&](absl::FunctionRef<absl::Status(absl::string_view)> take) {
    return is_archive ? ReadMember(array, file, take) : ReadPlain(file, array.path(), take);
  };
  if (!IsReordered(header)) {
    if (!header.big_endian || header.item_bytes == 1) return read(use);
    return read([&](absl::string_view piece) {
      std::string native(piece);
      SwapBytes(header, &native);
      return use(native);
    });
  }
  const int64_t samples = header.shape[0];
  const int64_t sample_bytes = header.shape.elements() / samples * header.item_bytes;
  const int64_t at_once = std::max<int64_t>(1, kFortranBlockBytes / sample_bytes);
  for (int64_t first = 0; first < samples; first += at_once) {
    const int64_t count = std::min(at_once, samples - first);
    FortranBlock block(header, first, count);
    if (is_archive || count == samples) {
      TANDEM_RETURN_IF_ERROR(read([&](absl::string_view piece) {
        block.Add(piece);
        return absl::OkStatus();
      }));
    } else {
      TANDEM_RETURN_IF_ERROR(ReadColumns(file, array.path(), first, count, block));
    }
    SwapBytes(header, &block.elements());
    const absl::string_view elements = block.elements();
    for (size_t at = 0; at < elements.size(); at += kPieceBytes) {
      TANDEM_RETURN_IF_ERROR(use(elements.substr(at, kPieceBytes)));
    }
  }
  return absl::OkStatus();
}

std::string NativeElements(const NpyHeader& header, absl::string_view elements) {
  std::string native;
  if (IsReordered(header)) {
    FortranBlock block(header, 0, header.shape[0]);
    block.Add(elements);
    native = std::move(block.elements());
  } else {
    native = std::string(elements);
  }
  SwapBytes(header, &native);
  return native;
}

std::string PlaceInArray(const Shape& shape, int64_t element) {
  if (shape.rank() < 2) return absl::StrCat("index ", element);
  std::vector<int64_t> index(shape.rank());
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = std::max<int64_t>(1, shape[axis]);
    index[axis] = element % extent;
    element /= extent;
  }
  return absl::StrCat("index [", absl::StrJoin(index, ", "), "]");
}

}  // namespace tandem
