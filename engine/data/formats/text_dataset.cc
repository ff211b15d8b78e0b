#include "engine/data/formats/text_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {
namespace {

// A token takes four bytes of memory.
constexpr int64_t kMaxTextBytes = kMaxDatasetBytes / 4;
constexpr int64_t kMaxLength = 1 << 20;
constexpr int64_t kTextChunk = int64_t{1} << 18;
// The longest character in UTF-8.
constexpr size_t kMaxCharacterBytes = 4;
// The owner of a vocabulary that a text must keep to, for messages.
constexpr absl::string_view kTheModel = "the model";

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
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    auto* sample = static_cast<int32_t*>(samples);
    auto* target = static_cast<int32_t*>(targets);
    for (const uint32_t index : indices) {
      const int32_t* from = text_->data() + begin_ + index * stride_;
      sample = std::copy(from, from + length_, sample);
      target = std::copy(from + 1, from + length_ + 1, target);
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Tokens> text_;
  const int64_t begin_;
  const int64_t samples_;
  const int64_t length_;
  const int64_t stride_;
};

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

// Returns the token of each character of a model's vocabulary, and -1 for other characters below the
// greatest. Empty if `names` are not characters, as for a model of other data.
std::vector<int32_t> TokensOf(const std::vector<std::string>& names) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::string_view left = names[i];
    const int32_t point = left.empty() ? -1 : TakeCodePoint(&left);
    if (point < 0 || !left.empty()) return {};
    if (tokens.size() <= static_cast<size_t>(point)) tokens.resize(point + 1, -1);
    tokens[point] = static_cast<int32_t>(i);
  }
  return tokens;
}

// The set of a text's code points. It grows with the greatest code point, which is small in most texts.
class Alphabet {
 public:
  void Add(int32_t point) {
    if (has_.size() <= static_cast<size_t>(point)) has_.resize(point + 1);
    has_[point] = true;
  }
  // Returns the tokens by code point, ascending, and -1 for absent characters. Sets `names` to the
  // characters.
  std::vector<int32_t> Vocabulary(std::vector<std::string>* names) const {
    std::vector<int32_t> tokens(has_.size(), -1);
    for (size_t point = 0; point < has_.size(); ++point) {
      if (!has_[point]) continue;
      tokens[point] = static_cast<int32_t>(names->size());
      names->push_back(Utf8(static_cast<int32_t>(point)));
    }
    return tokens;
  }

 private:
  std::vector<bool> has_;
};

struct Texts {
  // Null if not kept, or without a file.
  std::shared_ptr<Tokens> train;
  std::shared_ptr<Tokens> validation;
  int64_t train_tokens = 0;  // The rest of the text is the validation split.
  DatasetInfo info;
};

// Reads a text by characters or bytes. Returns the error of `use`.
absl::Status ForEachCharacter(const std::string& path, v1::TextTokens tokens,
                              absl::FunctionRef<absl::Status(int32_t)> use) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
  // A token takes four bytes, and four more while the vector grows.
  const int64_t most = CompressedFile::MostInMemory(kMaxTextBytes, 8);
  TANDEM_RETURN_IF_ERROR(file->CheckPlainLength(most));
  std::string buffer(kTextChunk, '\0');
  // Counts the whole characters, and the beginning of a character that the next piece completes.
  int64_t done = 0;
  size_t rest = 0;
  for (bool at_end = false; !at_end;) {
    const auto wanted = static_cast<int64_t>(buffer.size() - rest);
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, file->Read(buffer.data() + rest, wanted));
    at_end = count < wanted;
    absl::string_view left(buffer.data(), rest + count);
    if (done + static_cast<int64_t>(left.size()) > most) return file->TooLong(most);
    while (!left.empty()) {
      const absl::string_view before = left;
      int32_t point = static_cast<uint8_t>(left.front());
      if (tokens == v1::TEXT_TOKENS_BYTES) {
        left.remove_prefix(1);
      } else {
        if (left.size() < kMaxCharacterBytes && !at_end) break;
        point = TakeCodePoint(&left);
      }
      if (point < 0) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "%s is not UTF-8: byte 0x%02x at offset %d; read it with tokens: bytes, or convert it", path,
            static_cast<uint8_t>(before.front()), done));
      }
      TANDEM_RETURN_IF_ERROR(use(point));
      done += static_cast<int64_t>(before.size() - left.size());
    }
    rest = left.size();
    std::memmove(buffer.data(), left.data(), rest);
  }
  return absl::OkStatus();
}

// Returns the number of a text's tokens. If tokens are characters, adds them to `alphabet`.
absl::StatusOr<int64_t> CountTokens(const std::string& path, v1::TextTokens tokens, Alphabet& alphabet) {
  int64_t count = 0;
  TANDEM_RETURN_IF_ERROR(ForEachCharacter(path, tokens, [&](int32_t character) {
    ++count;
    alphabet.Add(character);
    return absl::OkStatus();
  }));
  return count;
}

// Converts characters to tokens, and stores them in `kept` unless it is null. INVALID_ARGUMENT if a character
// is not in the vocabulary of `owner`, which the message names. Returns the number of tokens.
absl::StatusOr<int64_t> Translate(const std::string& path, v1::TextTokens tokens,
                                  const std::vector<int32_t>& vocabulary, absl::string_view owner,
                                  Tokens* kept) {
  int64_t count = 0;
  TANDEM_RETURN_IF_ERROR(ForEachCharacter(path, tokens, [&](int32_t character) -> absl::Status {
    int32_t token = -1;
    if (tokens == v1::TEXT_TOKENS_BYTES) {
      token = character;
    } else if (static_cast<size_t>(character) < vocabulary.size()) {
      token = vocabulary[character];
    }
    if (token < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s has the character '%s' (U+%04X) at position %d, which %s does not have; "
          "%s",
          path, ToUtf8(absl::Utf8SafeCHexEscape(Utf8(character))), character, count, owner,
          owner == kTheModel ? "remove it from the text" : "add it there, or read both with tokens: bytes"));
    }
    if (kept != nullptr) kept->push_back(token);
    ++count;
    return absl::OkStatus();
  }));
  return count;
}

FieldViolations CheckSource(const v1::TextSource& source) {
  FieldViolations violations;
  if (source.train().empty()) violations.Add("text.train", "is required: the path of a text");
  if (source.sequence_length() < 1 || source.sequence_length() > kMaxLength) {
    violations.Add(
        "text.sequence_length",
        source.sequence_length() == 0
            ? std::string("is required; give the tokens of a sample, such as 64")
            : absl::StrCat("is ", source.sequence_length(), "; it must be from 1 to ", kMaxLength));
  }
  if (source.stride() < 0 || source.stride() > kMaxTextBytes) {
    violations.Add("text.stride",
                   absl::StrCat("is ", source.stride(), "; it must be at least 1, or left out"));
  }
  return violations;
}

struct Vocabulary {
  std::vector<int32_t> tokens;  // By code point. -1 if absent. Empty if tokens are bytes.
  bool is_models = false;       // Of the model, and not of the training text.
};

// Chooses the vocabulary of the model if it has one, else that of the training text's `alphabet`. Describes
// the classes in `info`.
Vocabulary ChooseVocabulary(v1::TextTokens tokens, const DataNames& model, const Alphabet& alphabet,
                            DatasetInfo* info) {
  Vocabulary vocabulary;
  if (tokens == v1::TEXT_TOKENS_BYTES) {
    info->classes = 256;
    return vocabulary;
  }
  info->labels_follow_names = true;
  vocabulary.tokens = TokensOf(model.classes);
  vocabulary.is_models = !vocabulary.tokens.empty();
  if (!vocabulary.is_models) {
    vocabulary.tokens = alphabet.Vocabulary(&info->class_names);
  } else {
    info->class_names = model.classes;
    std::vector<std::string> own;
    alphabet.Vocabulary(&own);
    info->class_labels = ClassLabels(own, model.classes);
  }
  info->classes = static_cast<int64_t>(info->class_names.size());
  return vocabulary;
}

int64_t StrideOf(const v1::TextSource& source) {
  return source.stride() > 0 ? source.stride() : source.sequence_length();
}

// Splits the training text and counts the samples. `total` and `validation` are the tokens of both texts.
// INVALID_ARGUMENT: a split has too few samples or too many.
absl::Status CountSamples(const v1::DatasetSpec& spec, int64_t total, int64_t validation, Texts* texts) {
  const v1::TextSource& source = spec.text();
  const int64_t length = source.sequence_length();
  const int64_t stride = StrideOf(source);
  FieldViolations violations;
  const auto count = [&](const char* field, int64_t tokens) {
    const int64_t samples = tokens <= length ? 0 : 1 + (tokens - length - 1) / stride;
    if (samples == 0) {
      violations.Add(field, absl::StrCat("gives ", tokens, " tokens, too few for one sequence of ", length,
                                         " and the token after it"));
    } else if (samples > kMaxSamples) {
      violations.Add("text.stride", absl::StrCat("is ", stride, ", which makes more than the ", kMaxSamples,
                                                 " samples that can be read"));
    }
    return samples;
  };
  const bool validates = !source.validation().empty();
  const double fraction = spec.validation_split().fraction();
  const bool splits = spec.has_validation_split() && !validates && fraction > 0 && fraction < 1;
  // At least a token, so that a fraction that rounds to none is reported.
  if (splits) validation = std::max(1LL, std::llround(static_cast<double>(total) * fraction));
  texts->train_tokens = splits ? total - validation : total;
  texts->info.train_samples = count("text.train", texts->train_tokens);
  if (splits) texts->info.validation_samples = count("validation_split.fraction", validation);
  if (validates) texts->info.validation_samples = count("text.validation", validation);
  return violations.ToStatus();
}

// Reads the whole text. Keeps the tokens only if `keeps`.
absl::StatusOr<Texts> ReadTexts(const v1::DatasetSpec& spec, const DataNames& model, bool keeps) {
  const v1::TextSource& source = spec.text();
  FieldViolations violations = CheckSource(source);
  Alphabet alphabet;
  absl::StatusOr<int64_t> counted = 0;
  if (!source.train().empty()) counted = CountTokens(source.train(), source.tokens(), alphabet);
  violations.AddAll("text.train", counted.status());
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  const int64_t total = *counted;

  Texts texts;
  DatasetInfo& info = texts.info;
  const Vocabulary vocabulary = ChooseVocabulary(source.tokens(), model, alphabet, &info);
  const absl::string_view owner = vocabulary.is_models ? kTheModel : "the training text";
  if (keeps) {
    texts.train = std::make_shared<Tokens>();
    texts.train->reserve(total);
  }
  if (keeps || vocabulary.is_models) {
    const absl::StatusOr<int64_t> kept =
        Translate(source.train(), source.tokens(), vocabulary.tokens, owner, texts.train.get());
    violations.AddAll("text.train", kept.status());
    if (kept.ok() && *kept != total) violations.Add("text.train", "changed while it was read");
  }
  int64_t validation = 0;
  if (!source.validation().empty()) {
    if (keeps) texts.validation = std::make_shared<Tokens>();
    const absl::StatusOr<int64_t> translated =
        Translate(source.validation(), source.tokens(), vocabulary.tokens, owner, texts.validation.get());
    violations.AddAll("text.validation", translated.status());
    if (translated.ok()) validation = *translated;
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  TANDEM_RETURN_IF_ERROR(CountSamples(spec, total, validation, &texts));
  info.shape = Shape({source.sequence_length()});
  info.target_shape = info.shape;
  info.sample_type = SampleType::kTokens;
  info.target_type = TargetKind::kTokens;
  info.memory_bytes = (total + validation) * static_cast<int64_t>(sizeof(int32_t));
  return texts;
}

}  // namespace

absl::StatusOr<DatasetInfo> DescribeText(const v1::DatasetSpec& spec, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Texts texts, ReadTexts(spec, model, /*keeps=*/false));
  return std::move(texts.info);
}

absl::StatusOr<OpenedDataset> OpenText(const v1::DatasetSpec& spec, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Texts texts, ReadTexts(spec, model, /*keeps=*/true));
  OpenedDataset opened;
  opened.info = std::move(texts.info);
  const DatasetInfo& info = opened.info;
  const int64_t length = info.shape[0];
  const int64_t stride = StrideOf(spec.text());
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
