// Repeats a call while a view is shown, and shows its errors.

import {isFinal} from "./api.js";

// Calls `read` now, and again `interval` ms after each end. `say` gets its errors. A final error stops the repetition.
export function poll(read, interval, {say, signal}) {
  const run = async () => {
    try {
      await read();
      say("");
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      say(error.message);
      if (isFinal(error.code)) return;
    }
    if (!signal.aborted) setTimeout(run, interval);
  };
  run();
}
