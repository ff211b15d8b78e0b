#include "engine/layers/embed_categories.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/linear.h"
#include "engine/layers/fields.h"
#include "engine/layers/sequence.h"

namespace tandem {
namespace {

constexpr int64_t kDefaultAbove = 10;
constexpr int64_t kMaxDefaultDimension = 50;
constexpr double kDefaultDeviation = 0.05;
// The most bytes of a column's name in a parameter's name, and in a message.
constexpr size_t kMaxNameBytes = 64;

std::string Quoted(const std::string& name) {
  return absl::StrCat("'", ToUtf8(absl::Utf8SafeCHexEscape(name.substr(0, kMaxNameBytes))), "'");
}

// Returns the names of the columns within the names of parameters, in the order of the columns. All differ.
std::vector<std::string> NamesInParameters(const v1::EmbedCategories& embed) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  std::map<std::string, int> numbers;
  for (const v1::EmbeddedColumn& column : embed.columns()) {
    std::string plain = column.name().substr(0, kMaxNameBytes);
    for (char& c : plain) {
      if (!absl::ascii_isalnum(c) && c != '_' && c != '-') c = '_';
    }
    if (plain.empty()) plain.push_back('_');
    int& number = numbers.emplace(plain, 1).first->second;
    std::string name = plain;
    while (!taken.insert(name).second) name = absl::StrCat(plain, "_", ++number);
    names.push_back(std::move(name));
  }
  return names;
}

int64_t EndOf(const v1::EmbeddedColumn& column) { return column.first_input() + column.inputs(); }

// Checks that each column is possible and lies behind the column before it.
void CheckColumns(const v1::EmbedCategories& embed, FieldViolations& violations) {
  int64_t end = 0;
  for (int i = 0; i < embed.columns_size(); ++i) {
    const v1::EmbeddedColumn& column = embed.columns(i);
    const std::string field = absl::StrCat("embed_categories.columns[", i, "]");
    FieldViolations found;
    CheckExtent(absl::StrCat(field, ".first_input"), column.first_input(), 0, found);
    CheckExtent(absl::StrCat(field, ".inputs"), column.inputs(), 1, found);
    CheckExtent(absl::StrCat(field, ".dimension"), column.dimension(), 1, found);
    if (found.empty() && column.first_input() < end) {
      found.Add(absl::StrCat(field, ".first_input"),
                absl::StrCat("is ", column.first_input(), ", but the previous column has the inputs below ",
                             end, "; give the columns in the order of their inputs, or leave columns out"));
    }
    violations.AddAll("", found.ToStatus());
    if (!found.empty()) return;
    end = EndOf(column);
  }
}

class EmbedCategoriesLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "embed_categories"; }
  bool must_be_first() const override { return true; }
  std::vector<std::string> InnerNames(const v1::Layer& layer) const override {
    return NamesInParameters(layer.embed_categories());
  }

  void FillDefaults(v1::Layer* layer) const override {
    v1::EmbedCategories* embed = layer->mutable_embed_categories();
    if (!embed->has_above()) embed->set_above(kDefaultAbove);
    FillInitializer(Normal(kDefaultDeviation), embed->mutable_weight_initializer());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::EmbedCategories& embed = layer.embed_categories();
    FieldViolations violations;
    CheckExtent("embed_categories.above", embed.above(), 0, violations);
    if (embed.dimension() != 0) {
      CheckExtent("embed_categories.dimension", embed.dimension(), 1, violations);
    }
    violations.AddAll("embed_categories.weight_initializer", CheckInitializer(embed.weight_initializer()));
    if (embed.columns_size() > kMaxInputs) {
      violations.Add("embed_categories",
                     absl::StrCat("embeds ", embed.columns_size(), " columns; it may embed at most ",
                                  kMaxInputs, "; raise above"));
    } else {
      CheckColumns(embed, violations);
    }
    if (violations.empty() && embed.columns().empty()) {
      violations.Add("embed_categories",
                     "has no columns; they are a table's, so give the job's table too, or give columns");
    }
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const v1::EmbedCategories& embed = layer.embed_categories();
    if (input.rank() != 1) {
      return FieldError("embed_categories",
                        absl::StrCat("takes the inputs of a table's row [features], not ", input.ToString()));
    }
    int64_t features = input[0];
    for (const v1::EmbeddedColumn& column : embed.columns()) {
      if (EndOf(column) > input[0]) {
        return FieldError("embed_categories.columns",
                          absl::StrCat("has the column ", Quoted(column.name()), " of ", column.inputs(),
                                       " inputs from input ", column.first_input(), ", but a sample has ",
                                       input[0], " inputs; leave columns out"));
      }
      features += column.dimension() - column.inputs();
    }
    return Shape({features});
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::EmbedCategories& embed = layer.embed_categories();
    const std::vector<std::string> names = NamesInParameters(embed);
    // The sizes of the parts of a row: embedded columns, and the inputs before, between and behind them.
    std::vector<int64_t> sizes;
    std::vector<int> columns;  // The part's column, or kStays.
    constexpr int kStays = -1;
    int64_t end = 0;
    const auto append = [&](int64_t next, int column) {
      if (next == end) return;
      sizes.push_back(next - end);
      columns.push_back(column);
      end = next;
    };
    for (int i = 0; i < embed.columns_size(); ++i) {
      append(embed.columns(i).first_input(), kStays);
      append(EndOf(embed.columns(i)), i);
    }
    append(context.graph.value(input).shape[1], kStays);

    std::vector<ValueId> parts = {input};
    if (sizes.size() > 1) {
      TANDEM_ASSIGN_OR_RETURN(
          parts, context.graph.AddNode(std::make_shared<SplitOp>(/*axis=*/1, std::move(sizes)), {input}));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (columns[i] == kStays) continue;
      const v1::EmbeddedColumn& column = embed.columns(columns[i]);
      const Fans fans{.in = static_cast<double>(column.inputs()),
                      .out = static_cast<double>(column.dimension())};
      const ValueId weight =
          AddParameter(context, absl::StrCat(layer.name(), ".", names[columns[i]]), "weight",
                       Shape({column.dimension(), column.inputs()}), embed.weight_initializer(), fans);
      TANDEM_ASSIGN_OR_RETURN(parts[i], context.graph.Add(std::make_shared<LinearOp>(), {parts[i], weight}));
    }
    if (parts.size() == 1) return parts[0];
    return context.graph.Add(std::make_shared<ConcatOp>(/*axis=*/1), std::move(parts));
  }
};

}  // namespace

const LayerKind& EmbedCategoriesKind() { return TheOnly<EmbedCategoriesLayerKind>(); }

absl::Status TakeColumns(absl::Span<const v1::EmbeddedColumn> columns, v1::EmbedCategories* embed) {
  if (columns.empty()) {
    return absl::InvalidArgumentError(
        "needs a table with a column of categories, but the data set has none, or more than 10,000, or more "
        "than 128 KiB of their names; remove embed_categories, or choose columns of the kind category in "
        "csv.columns");
  }
  const int64_t above = embed->has_above() ? embed->above() : kDefaultAbove;
  const v1::EmbeddedColumn* largest = nullptr;
  for (const v1::EmbeddedColumn& column : columns) {
    if (largest == nullptr || column.inputs() > largest->inputs()) largest = &column;
    if (column.inputs() <= above) continue;
    v1::EmbeddedColumn& taken = *embed->add_columns();
    taken = column;
    taken.set_dimension(embed->dimension() != 0 ? embed->dimension()
                                                : std::min(kMaxDefaultDimension, (column.inputs() + 1) / 2));
  }
  if (!embed->columns().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("embeds columns of more than ", above,
                                                 " inputs, but the largest column of categories, ",
                                                 Quoted(largest->name()), ", has ", largest->inputs(),
                                                 "; give a smaller above, or remove embed_categories"));
}

}  // namespace tandem
