// Arrays of numbers.

// The first index whose value is at least `at`; `values` ascends.
export function lowerBound(values, at) {
  let low = 0,
    high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
