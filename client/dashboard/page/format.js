// Values as people read them. Numbers of the daemon's JSON may be missing (0 or not known) or texts (int64, "NaN").

export const number = (value) => (value === undefined || value === null ? NaN : Number(value));

// A measure: 0.8912, 12.3, 1.2e-5; "NaN" if it is not a number.
export function measure(value) {
  const x = value === null ? NaN : Number(value);
  if (value === undefined) return "";
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2);
  return x.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 4);
}

// A setting: 20240531, 0.02, 0.0123457. Whole numbers have all their digits.
export function setting(value) {
  const text = String(value);
  return Number.isInteger(value) || text.length <= 8 ? text : String(+value.toPrecision(6));
}

// A number beside an axis, short: 0.0005, 250K, 1.5e9.
export function tick(value) {
  if (value === null) return "";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9))
    return String(Number(value.toPrecision(4)).toExponential()).replace("e+", "e");
  return value.toLocaleString(
    "en",
    size >= 1e4 ? {notation: "compact", maximumFractionDigits: 2} : {maximumSignificantDigits: 6, useGrouping: false},
  );
}

export const count = (value) => (value === undefined || value === null ? "" : Number(value).toLocaleString("en"));

// Kept, because toLocaleString makes a new format for each call, and a table has many numbers.
const WHOLE = new Intl.NumberFormat("en", {maximumFractionDigits: 0}),
  TENTHS = new Intl.NumberFormat("en", {maximumFractionDigits: 1});

export function rate(value) {
  if (value === undefined || value === null) return "";
  return `${(value < 10 ? TENTHS : WHOLE).format(Number(value))}/s`;
}

// In powers of 1000, as the command line shows bytes: "900 B", "1.7 MB".
export function bytes(value) {
  let x = Number(value ?? 0);
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (unit === "B" ? x < 1000 : x < 999.95) return `${unit === "B" ? x : x.toFixed(1)} ${unit}`;
    x /= 1000;
  }
  return `${x.toFixed(1)} TB`;
}

export function duration(seconds) {
  if (seconds === undefined || seconds === null || !Number.isFinite(seconds)) return "";
  const s = Math.max(0, Math.round(seconds));
  if (seconds > 0 && seconds < 1) return "< 1 s";
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// Seconds since 1970, or an RFC 3339 text.
export const seconds = (time) => (typeof time === "number" ? time : time ? Date.parse(time) / 1000 : undefined);

export function time(at) {
  const s = seconds(at);
  if (s === undefined) return "";
  const date = new Date(s * 1000);
  const today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(undefined, today ? {timeStyle: "medium"} : {dateStyle: "short", timeStyle: "short"});
}

export const shortEnum = (name, prefix) => (name ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
export const jobState = (name) => (name ?? "").replace("JOB_STATE_", "");
export const id = (name) => (name ?? "").split("/").pop();
