#include "engine/data/formats/text_dataset.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {
namespace {

// Four bytes of memory are taken for each.
constexpr int64_t kMaxTextBytes = kMaxDatasetBytes / 4;
constexpr int64_t kMaxLength = 1 << 20;

using Tokens = std::vector<int32_t>;

// Windows of a text: sample i is the tokens from i * stride on.
class TextDataset final : public Dataset {
 public:
  TextDataset(std::shared_ptr<const Tokens> text, int64_t begin, int64_t samples, int64_t length,
              int64_t stride)
      : text_(std::move(text)), begin_(begin), samples_(samples), length_(length), stride_(stride) {}

  int64_t size() const override { return samples_; }
  int64_t sample_bytes() const override { return length_ * static_cast<int64_t>(sizeof(int32_t)); }
  int64_t target_bytes() const override { return sample_bytes(); }
  void Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    auto* sample = static_cast<int32_t*>(samples);
    auto* target = static_cast<int32_t*>(targets);
    for (const uint32_t index : indices) {
      const int32_t* from = text_->data() + begin_ + index * stride_;
      sample = std::copy(from, from + length_, sample);
      target = std::copy(from + 1, from + length_ + 1, target);
    }
  }

 private:
  const std::shared_ptr<const Tokens> text_;
  const int64_t begin_;
  const int64_t samples_;
  const int64_t length_;
  const int64_t stride_;
};

// The code points of a text in UTF-8. INVALID_ARGUMENT where it is none.
absl::StatusOr<Tokens> CodePoints(const std::string& path, absl::string_view text) {
  Tokens points;
  points.reserve(text.size());
  for (absl::string_view left = text; !left.empty();) {
    const size_t at = text.size() - left.size();
    const int32_t point = TakeCodePoint(&left);
    if (point < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s is not UTF-8: byte 0x%02x at offset %d; read it with tokens: bytes, or convert it", path,
          static_cast<uint8_t>(text[at]), at));
    }
    points.push_back(point);
  }
  return points;
}

std::string Utf8(int32_t point) {
  std::string text;
  if (point < 0x80) {
    text.push_back(static_cast<char>(point));
    return text;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr int kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  text.push_back(static_cast<char>(kFirst[more] | point >> (6 * more)));
  for (int k = more - 1; k >= 0; --k) text.push_back(static_cast<char>(0x80 | (point >> (6 * k) & 0x3F)));
  return text;
}

// Code point to token, in rising order.
using Vocabulary = std::map<int32_t, int32_t>;

struct Texts {
  std::shared_ptr<Tokens> train;
  std::shared_ptr<Tokens> validation;  // Null where there is no file for it.
  int64_t train_tokens = 0;            // The rest of `train` is the validation split.
  DatasetInfo info;
};

absl::StatusOr<Tokens> ReadTokens(const std::string& path, v1::TextTokens tokens) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
  // A byte of text while it grows, and four of a token.
  const int64_t most = CompressedFile::MostInMemory(kMaxTextBytes, 7);
  TANDEM_ASSIGN_OR_RETURN(const std::string text, file->ReadAll(most));
  if (tokens != v1::TEXT_TOKENS_BYTES) return CodePoints(path, text);
  Tokens bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<uint8_t>(c); });
  return bytes;
}

// Code points become tokens. INVALID_ARGUMENT where one is not in the vocabulary.
absl::Status Translate(const std::string& path, const Vocabulary& vocabulary, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto found = vocabulary.find(tokens[i]);
    if (found == vocabulary.end()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s has the character U+%04X at position %d, which the training text does not "
                          "have; add it there, or "
                          "read both with tokens: bytes",
                          path, tokens[i], i));
    }
    tokens[i] = found->second;
  }
  return absl::OkStatus();
}

absl::StatusOr<Texts> ReadTexts(const v1::DatasetSpec& spec) {
  const v1::TextSource& source = spec.text();
  FieldViolations violations;
  if (source.train().empty()) violations.Add("text.train", "is required: the path of a text");
  if (source.sequence_length() < 1 || source.sequence_length() > kMaxLength) {
    violations.Add("text.sequence_length",
                   absl::StrCat("is ", source.sequence_length(), "; it must be from 1 to ", kMaxLength));
  }
  if (source.stride() < 0 || source.stride() > kMaxTextBytes) {
    violations.Add("text.stride",
                   absl::StrCat("is ", source.stride(), "; it must be at least 1, or left out"));
  }
  Texts texts;
  const auto read = [&](const char* field, const std::string& path, std::shared_ptr<Tokens>& tokens) {
    if (path.empty()) return;
    absl::StatusOr<Tokens> content = ReadTokens(path, source.tokens());
    violations.AddAll(field, content.status());
    if (content.ok()) tokens = std::make_shared<Tokens>(*std::move(content));
  };
  read("text.train", source.train(), texts.train);
  read("text.validation", source.validation(), texts.validation);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());

  DatasetInfo& info = texts.info;
  if (source.tokens() == v1::TEXT_TOKENS_BYTES) {
    info.classes = 256;
  } else {
    Vocabulary vocabulary;
    for (const int32_t point : *texts.train) vocabulary[point] = 0;
    for (auto& [point, token] : vocabulary) {
      token = static_cast<int32_t>(info.classes++);
      info.class_names.push_back(Utf8(point));
    }
    TANDEM_RETURN_IF_ERROR(Translate(source.train(), vocabulary, *texts.train));
    if (texts.validation != nullptr) {
      violations.AddAll("text.validation", Translate(source.validation(), vocabulary, *texts.validation));
    }
  }
  const int64_t length = source.sequence_length(), stride = source.stride() > 0 ? source.stride() : length;
  const auto samples = [&](int64_t tokens) {
    return tokens <= length ? 0 : 1 + (tokens - length - 1) / stride;
  };
  const auto total = static_cast<int64_t>(texts.train->size());
  texts.train_tokens = total;
  const double fraction = spec.validation_split().fraction();
  if (spec.has_validation_split() && texts.validation == nullptr && fraction > 0 && fraction < 1) {
    texts.train_tokens = total - std::llround(static_cast<double>(total) * fraction);
    info.validation_samples = samples(total - texts.train_tokens);
  }
  const auto check = [&](const char* field, int64_t tokens) {
    if (samples(tokens) == 0) {
      violations.Add(field, absl::StrCat("gives ", tokens, " tokens, too few for one sequence of ", length,
                                         " and the token after it"));
    } else if (samples(tokens) > kMaxSamples) {
      violations.Add("text.stride", absl::StrCat("is ", stride, ", which makes more than the ", kMaxSamples,
                                                 " samples that can be read"));
    }
  };
  check("text.train", texts.train_tokens);
  if (texts.train_tokens < total) check("validation_split.fraction", total - texts.train_tokens);
  if (texts.validation != nullptr) {
    info.validation_samples = samples(static_cast<int64_t>(texts.validation->size()));
    check("text.validation", static_cast<int64_t>(texts.validation->size()));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  info.shape = Shape({length});
  info.target_shape = Shape({length});
  info.sample_type = SampleType::kTokens;
  info.target_type = TargetType::kTokens;
  info.train_samples = samples(texts.train_tokens);
  const auto validation = texts.validation == nullptr ? 0 : static_cast<int64_t>(texts.validation->size());
  info.memory_bytes = (total + validation) * static_cast<int64_t>(sizeof(int32_t));
  return texts;
}

}  // namespace

absl::StatusOr<DatasetInfo> DescribeText(const v1::DatasetSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(Texts texts, ReadTexts(spec));
  return std::move(texts.info);
}

absl::StatusOr<OpenedDataset> OpenText(const v1::DatasetSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(Texts texts, ReadTexts(spec));
  OpenedDataset opened;
  opened.info = std::move(texts.info);
  const DatasetInfo& info = opened.info;
  const int64_t length = info.shape[0], stride = spec.text().stride() > 0 ? spec.text().stride() : length;
  opened.train = std::make_unique<TextDataset>(texts.train, 0, info.train_samples, length, stride);
  if (info.validation_samples > 0) {
    const bool own = texts.validation != nullptr;
    opened.validation =
        std::make_unique<TextDataset>(own ? texts.validation : texts.train, own ? 0 : texts.train_tokens,
                                      info.validation_samples, length, stride);
  }
  return opened;
}

}  // namespace tandem
