#ifndef TANDEM_CLIENT_CLI_PLOT_H_
#define TANDEM_CLIENT_CLI_PLOT_H_

#include <string>
#include <utility>
#include <vector>

#include "client/cli/style.h"

namespace tandem::cli {

// Curves in a terminal, with axes, scales and a legend. With Unicode, it draws braille patterns of two by
// four dots in each cell. Without Unicode, it draws two dots in each cell, with the characters ' . and :. Not
// thread-safe.
class Plot {
 public:
  struct Point {
    double x;
    double y;
  };
  struct Series {
    std::string name;
    // A colour's code for Style::Wrap.
    std::string color;
    // Whether to mark each point.
    bool marked = false;
    // The points, in the order of the curve. The curve breaks at points that are not finite.
    std::vector<Point> points;
  };

  explicit Plot(std::string title) : title_(std::move(title)) {}

  void Add(Series series) { series_.push_back(std::move(series)); }
  // Sets the range of the x axis. Default: from the least to the largest x.
  void SetXRange(double low, double high) {
    x_low_ = low;
    x_high_ = high;
  }

  // Returns `height` lines of at most `width` columns: title and legend, curves, x axis, its numbers. Less
  // than 5 lines or 24 columns count as 5 and 24.
  std::vector<std::string> Render(int width, int height, bool unicode, const Style& style) const;

 private:
  const std::string title_;
  std::vector<Series> series_;
  double x_low_ = 0;
  double x_high_ = 0;
};

// The ticks of an axis: about `wanted` numbers in round steps (1, 2 or 5 times a power of ten), around low
// and high.
struct AxisTicks {
  double low = 0;
  double high = 1;
  double step = 1;
  // The number of decimals that tell neighbouring ticks apart.
  int decimals = 0;
};
AxisTicks RoundTicks(double low, double high, int wanted);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PLOT_H_
