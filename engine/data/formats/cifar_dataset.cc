#include "engine/data/formats/cifar_dataset.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/formats/archive.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/memory_dataset.h"
#include "engine/data/parallel.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kImageBytes = 3 * 32 * 32;
constexpr int64_t kMaxClassNamesBytes = 1 << 16;
constexpr const char* kCifar10Classes[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck"};
constexpr const char* kCifar10Train[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin"};

// The layout of records, and the label that counts.
struct Records {
  int label_bytes = 1;
  int label_at = 0;
  int classes = 10;
  int64_t bytes() const { return label_bytes + kImageBytes; }
};

// A file of records, or a member of an archive.
struct Part {
  std::string field;   // "cifar.train[2]"
  std::string path;    // Of the file or the archive.
  std::string member;  // Empty for a file.
  int64_t records = 0;
  std::string ToString() const { return member.empty() ? path : absl::StrCat(path, ": ", ToUtf8(member)); }
};

struct Layout {
  Records records;
  std::vector<Part> train;
  std::vector<Part> validation;
  std::vector<std::string> class_names;
  bool archive = false;
};

Records RecordsOf(const v1::CifarSource& source, bool has_cifar100) {
  const bool hundred = source.variant() == v1::CIFAR_VARIANT_CIFAR100 ||
                       (source.variant() == v1::CIFAR_VARIANT_UNSPECIFIED && has_cifar100);
  if (!hundred) return {};
  const bool coarse = source.labels() == v1::CIFAR_LABELS_COARSE;
  return {.label_bytes = 2, .label_at = coarse ? 0 : 1, .classes = coarse ? 20 : 100};
}

std::string Basename(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// Returns the name of a file without the suffix of its compression.
std::string PlainName(const std::string& name) {
  absl::string_view plain = name;
  for (const char* ending : {".gz", ".xz", ".zst", ".bz2"}) {
    if (absl::ConsumeSuffix(&plain, ending)) break;
  }
  return std::string(plain);
}

// Returns the names of classes, a line each.
std::vector<std::string> NamesFrom(absl::string_view content, int classes) {
  std::vector<std::string> names = absl::StrSplit(content, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  if (static_cast<int>(names.size()) != classes) names.clear();
  return names;
}

absl::Status WrongLength(const std::string& what, int64_t bytes, const Records& records) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " holds ", bytes, " bytes, which is not a multiple of the ", records.bytes(),
      " of a record of CIFAR-", records.label_bytes == 1 ? "10" : "100",
      ": it is truncated, or another file; where it is of the other variant, say so in cifar.variant"));
}

absl::Status CheckRecords(Part& part, int64_t bytes, const Records& records) {
  if (bytes == 0 || bytes % records.bytes() != 0) return WrongLength(part.ToString(), bytes, records);
  // A header of an archive may claim any length.
  if (bytes > kMaxDatasetBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(part.ToString(), " is longer than the ", kMaxDatasetBytes, " bytes that can be read"));
  }
  part.records = bytes / records.bytes();
  return absl::OkStatus();
}

// Returns the decompressed length. Reads a compressed file, because a gzip file of several members states
// only the length of the last member.
absl::StatusOr<int64_t> LengthOf(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
  if (file->is_plain()) return file->StatedLength();
  std::vector<char> buffer(1 << 18);
  int64_t length = 0;
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, file->Read(buffer.data(), buffer.size()));
    length += count;
    if (length > kMaxDatasetBytes) {
      return file->TooLong(kMaxDatasetBytes);
    }
    if (count < static_cast<int64_t>(buffer.size())) return length;
  }
}

// Puts the needed parts of `found` (by plain name) in their order.
absl::Status Order(const v1::CifarSource& source, const std::string& where,
                   std::map<std::string, Part>& found, Layout& layout) {
  const bool hundred = source.variant() == v1::CIFAR_VARIANT_CIFAR100 ||
                       (source.variant() == v1::CIFAR_VARIANT_UNSPECIFIED && found.contains("train.bin"));
  layout.records = RecordsOf(source, hundred);
  std::vector<std::string> train(std::begin(kCifar10Train), std::end(kCifar10Train));
  if (hundred) train = {"train.bin"};
  for (const std::string& name : train) {
    const auto part = found.find(name);
    if (part == found.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " has no ", name, hundred ? "" : " (CIFAR-10)",
                       layout.archive ? "" : ", plain or with .gz, .xz, .zst or .bz2",
                       "; it must have data_batch_1.bin to data_batch_5.bin, or train.bin",
                       layout.archive ? ", and these files must not be compressed within the archive" : ""));
    }
    layout.train.push_back(std::move(part->second));
  }
  const auto test = found.find(hundred ? "test.bin" : "test_batch.bin");
  if (test != found.end()) layout.validation.push_back(std::move(test->second));
  return absl::OkStatus();
}

const char* NamesFile(const Records& records) {
  return records.classes == 10    ? "batches.meta.txt"
         : records.classes == 100 ? "fine_label_names.txt"
                                  : "coarse_label_names.txt";
}

bool IsNamesFile(const std::string& plain_name) {
  return plain_name == "batches.meta.txt" || plain_name == "fine_label_names.txt" ||
         plain_name == "coarse_label_names.txt";
}

bool IsWanted(const std::string& plain_name) {
  return plain_name == "train.bin" || plain_name == "test.bin" || plain_name == "test_batch.bin" ||
         std::find(std::begin(kCifar10Train), std::end(kCifar10Train), plain_name) != std::end(kCifar10Train);
}

absl::Status FoundTwice(const std::string& where, const std::string& first, const std::string& second) {
  return absl::InvalidArgumentError(absl::StrCat(where, " has two files of the same name, ", ToUtf8(first),
                                                 " and ", ToUtf8(second), "; remove one"));
}

absl::Status LookIntoFolder(const v1::CifarSource& source, Layout& layout) {
  std::map<std::string, Part> found;
  std::map<std::string, std::string> names;
  absl::Status twice;
  TANDEM_RETURN_IF_ERROR(WalkDataFolder(source.path(), [&](const fs::path& file, bool is_folder) {
    if (is_folder) return;
    const std::string path = file.string();
    const std::string plain = PlainName(Basename(path));
    if (IsWanted(plain) && found.contains(plain) &&
        fs::path(found[plain].path).parent_path() != file.parent_path()) {
      twice.Update(FoundTwice(source.path(), found[plain].path, path));
    }
    // Of a plain and a compressed file, the plain file counts.
    if (IsWanted(plain) && (!found.contains(plain) || path.size() < found[plain].path.size())) {
      found[plain] = {.field = "cifar.path", .path = path, .member = ""};
    }
    if (IsNamesFile(plain)) names[plain] = path;
  }));
  TANDEM_RETURN_IF_ERROR(twice);
  TANDEM_RETURN_IF_ERROR(Order(source, source.path(), found, layout));
  for (std::vector<Part>* parts : {&layout.train, &layout.validation}) {
    for (Part& part : *parts) {
      TANDEM_ASSIGN_OR_RETURN(const int64_t bytes, LengthOf(part.path));
      TANDEM_RETURN_IF_ERROR(CheckRecords(part, bytes, layout.records));
    }
  }
  if (const auto file = names.find(NamesFile(layout.records)); file != names.end()) {
    absl::StatusOr<std::unique_ptr<CompressedFile>> opened = CompressedFile::Open(file->second);
    if (opened.ok()) {
      const absl::StatusOr<std::string> content = (*opened)->ReadAll(kMaxClassNamesBytes);
      if (content.ok()) layout.class_names = NamesFrom(*content, layout.records.classes);
    }
  }
  return absl::OkStatus();
}

absl::Status LookIntoArchive(const v1::CifarSource& source, Layout& layout) {
  layout.archive = true;
  std::map<std::string, Part> found;
  std::map<std::string, int64_t> lengths;
  std::map<std::string, std::string> names;
  TANDEM_RETURN_IF_ERROR(
      ForEachArchiveMember(source.path(), [&](const TarMember& member, const TarRead& read) -> absl::Status {
        if (IsSkippedPath(member.name)) return absl::OkStatus();
        const std::string name = Basename(member.name);
        if (IsWanted(name)) {
          if (found.contains(name)) return FoundTwice(source.path(), found[name].member, member.name);
          found[name] = {.field = "cifar.path", .path = source.path(), .member = member.name};
          lengths[member.name] = member.bytes;
        } else if (IsNamesFile(name) && member.bytes <= kMaxClassNamesBytes) {
          std::string content(member.bytes, '\0');
          TANDEM_RETURN_IF_ERROR(read(content.data(), member.bytes).status());
          names[name] = std::move(content);
        }
        return absl::OkStatus();
      }));
  TANDEM_RETURN_IF_ERROR(Order(source, source.path(), found, layout));
  for (std::vector<Part>* parts : {&layout.train, &layout.validation}) {
    for (Part& part : *parts) {
      TANDEM_RETURN_IF_ERROR(CheckRecords(part, lengths[part.member], layout.records));
    }
  }
  layout.class_names = NamesFrom(names[NamesFile(layout.records)], layout.records.classes);
  return absl::OkStatus();
}

absl::StatusOr<Layout> LayOut(const v1::CifarSource& source) {
  Layout layout;
  FieldViolations violations;
  if (source.path().empty() == source.train().empty()) {
    violations.Add(
        source.path().empty() ? "cifar.path" : "cifar.train",
        source.path().empty()
            ? "is required: the folder or archive of CIFAR's binary files; or give their paths in train"
            : "and path are both given; give one of them");
    return violations.ToStatus();
  }
  if (!source.path().empty()) {
    if (!source.validation().empty()) {
      return FieldError("cifar.validation", "is given together with path, which has validation files itself");
    }
    std::error_code error;
    violations.AddAll("cifar.path", fs::is_directory(source.path(), error) ? LookIntoFolder(source, layout)
                                                                           : LookIntoArchive(source, layout));
  } else {
    layout.records = RecordsOf(source, false);
    const auto add = [&](const char* name, const auto& paths, std::vector<Part>& parts) {
      for (int i = 0; i < paths.size(); ++i) {
        Part part{.field = absl::StrCat("cifar.", name, "[", i, "]"), .path = paths[i], .member = ""};
        const absl::StatusOr<int64_t> bytes = LengthOf(part.path);
        const absl::Status status = bytes.ok() ? CheckRecords(part, *bytes, layout.records) : bytes.status();
        violations.AddAll(part.field, status);
        parts.push_back(std::move(part));
      }
    };
    add("train", source.train(), layout.train);
    add("validation", source.validation(), layout.validation);
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  if (layout.class_names.empty() && layout.records.classes == 10) {
    layout.class_names.assign(std::begin(kCifar10Classes), std::end(kCifar10Classes));
  }
  return layout;
}

int64_t RecordsIn(const std::vector<Part>& parts) {
  int64_t records = 0;
  for (const Part& part : parts) records += part.records;
  return records;
}

absl::StatusOr<DatasetInfo> InfoOf(const Layout& layout) {
  DatasetInfo info{.shape = Shape({3, 32, 32}),
                   .classes = layout.records.classes,
                   .train_samples = RecordsIn(layout.train),
                   .validation_samples = RecordsIn(layout.validation)};
  const int64_t samples = info.train_samples + info.validation_samples;
  info.memory_bytes = samples * (kImageBytes + static_cast<int64_t>(sizeof(int32_t)));
  info.class_names = layout.class_names;
  if (info.memory_bytes > kMaxDatasetBytes) {
    return FieldError(layout.train[0].field,
                      absl::StrCat("and the other files hold ", samples, " images, more than the ",
                                   kMaxDatasetBytes, " bytes that can be read"));
  }
  return info;
}

// The samples of a split.
struct CifarSplit {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
  explicit CifarSplit(int64_t records) : images(records * kImageBytes), labels(records) {}
};

// Takes a record. `index` is its number in the split.
using TakeRecord = std::function<void(int64_t index, int32_t label, const uint8_t* image)>;

// Reads the records of a part. The first has the number `first`.
absl::Status ReadRecords(const Part& part, const Records& records, int64_t first, const TakeRecord& take,
                         const std::function<absl::StatusOr<int64_t>(void*, int64_t)>& read) {
  constexpr int64_t kRecordsAtOnce = 64;
  std::vector<uint8_t> buffer(kRecordsAtOnce * records.bytes());
  for (int64_t done = 0; done < part.records;) {
    const int64_t wanted = std::min(kRecordsAtOnce, part.records - done);
    TANDEM_ASSIGN_OR_RETURN(const int64_t bytes, read(buffer.data(), wanted * records.bytes()));
    if (bytes < wanted * records.bytes()) {
      return WrongLength(part.ToString(), done * records.bytes() + bytes, records);
    }
    for (int64_t i = 0; i < wanted; ++i, ++done) {
      const uint8_t* record = buffer.data() + i * records.bytes();
      const int label = record[records.label_at];
      if (label >= records.classes) {
        return absl::InvalidArgumentError(absl::StrCat(part.ToString(), " holds label ", label, " in record ",
                                                       done, ", outside the ", records.classes,
                                                       " classes (0 to ", records.classes - 1, ")"));
      }
      take(first + done, label, record + records.label_bytes);
    }
  }
  uint8_t more = 0;
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, read(&more, 1));
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(part.ToString(), " holds more than the ", part.records, " records that its length says"));
}

absl::Status ReadFile(const Part& part, const Records& records, int64_t first, const TakeRecord& take) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<CompressedFile> file, CompressedFile::Open(part.path));
  return ReadRecords(part, records, first, take,
                     [&](void* data, int64_t size) { return file->Read(data, size); });
}

// A part with the taker of its records.
struct Job {
  const Part* part;
  TakeRecord take;
  int64_t first;
};

// Returns the violations of all failed parts.
absl::Status OfFiles(const std::vector<Job>& jobs, const std::vector<absl::Status>& statuses) {
  FieldViolations violations;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (absl::IsResourceExhausted(statuses[i])) return statuses[i];
    violations.AddAll(jobs[i].part->field, statuses[i]);
  }
  return violations.ToStatus();
}

absl::Status ReadFiles(const std::vector<Job>& jobs, const Records& records) {
  return OfFiles(jobs, RunInParallel(jobs.size(), [&](size_t i) {
                   return ReadFile(*jobs[i].part, records, jobs[i].first, jobs[i].take);
                 }));
}

absl::Status ReadArchive(const std::string& path, const std::vector<Job>& jobs, const Records& records) {
  const absl::Status status =
      ForEachArchiveMember(path, [&](const TarMember& member, const TarRead& read) -> absl::Status {
        for (const Job& job : jobs) {
          if (job.part->member != member.name) continue;
          return ReadRecords(*job.part, records, job.first, job.take, read);
        }
        return absl::OkStatus();
      });
  return UnderField("cifar.path", status);
}

void AddJobs(const std::vector<Part>& parts, const TakeRecord& take, std::vector<Job>& jobs) {
  int64_t first = 0;
  for (const Part& part : parts) {
    jobs.push_back({&part, take, first});
    first += part.records;
  }
}

// Returns a function that stores records in the split, which must outlive it.
TakeRecord Keeping(CifarSplit& split) {
  return [&split](int64_t index, int32_t label, const uint8_t* image) {
    split.labels[index] = label;
    std::memcpy(split.images.data() + index * kImageBytes, image, kImageBytes);
  };
}

std::unique_ptr<const Dataset> Finish(CifarSplit split) {
  return std::make_unique<MemoryDataset>(kImageBytes, std::move(split.images), sizeof(int32_t),
                                         BytesOf(split.labels));
}

}  // namespace

absl::Status StreamCifar(const v1::CifarSource& source, UseSamples use) {
  TANDEM_ASSIGN_OR_RETURN(const Layout layout, LayOut(source));
  std::vector<Job> jobs;
  AddJobs(
      layout.train, [&](int64_t index, int32_t label, const uint8_t* image) { use(index, 1, image, &label); },
      jobs);
  // The validation's labels are only checked.
  AddJobs(
      layout.validation, [](int64_t, int32_t, const uint8_t*) {}, jobs);
  if (layout.archive) return ReadArchive(source.path(), jobs, layout.records);
  std::vector<absl::Status> statuses(jobs.size());
  // Files are read in turn, because `use` takes a single sample at a time.
  for (size_t i = 0; i < jobs.size(); ++i) {
    statuses[i] = ReadFile(*jobs[i].part, layout.records, jobs[i].first, jobs[i].take);
  }
  return OfFiles(jobs, statuses);
}

absl::StatusOr<DatasetInfo> DescribeCifar(const v1::CifarSource& source) {
  TANDEM_ASSIGN_OR_RETURN(const Layout layout, LayOut(source));
  return InfoOf(layout);
}

absl::StatusOr<OpenedDataset> OpenCifar(const v1::CifarSource& source) {
  TANDEM_ASSIGN_OR_RETURN(const Layout layout, LayOut(source));
  OpenedDataset opened;
  TANDEM_ASSIGN_OR_RETURN(opened.info, InfoOf(layout));
  CifarSplit train(opened.info.train_samples);
  CifarSplit validation(opened.info.validation_samples);
  std::vector<Job> jobs;
  AddJobs(layout.train, Keeping(train), jobs);
  AddJobs(layout.validation, Keeping(validation), jobs);
  TANDEM_RETURN_IF_ERROR(layout.archive ? ReadArchive(source.path(), jobs, layout.records)
                                        : ReadFiles(jobs, layout.records));
  opened.train = Finish(std::move(train));
  if (opened.info.validation_samples > 0) opened.validation = Finish(std::move(validation));
  return opened;
}

}  // namespace tandem
