// Calls of the daemon, through the dashboard's server.

export class CallError extends Error {
  constructor(error) {
    super([error.message, ...(error.violations ?? []).map((one) => `${one.field}: ${one.description}`)].join("\n"));
    this.code = error.code;
  }
}

// Returns the response of a unary call, such as call("GetJob", {name: "jobs/x"}). Throws CallError.
export async function call(method, request = {}, signal = undefined) {
  return (
    await ask(`/api/${method}`, {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify(request),
      signal,
    })
  ).json();
}

// Returns the response of a GET. Throws CallError.
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError({code: "UNAVAILABLE", message: "cannot reach the dashboard; start `tandem dashboard` again"});
  }
  if (response.ok) return response;
  const text = await response.text();
  try {
    throw new CallError(JSON.parse(text));
  } catch (error) {
    if (error instanceof CallError) throw error;
    throw new CallError({code: response.status === 401 ? "UNAUTHENTICATED" : "INTERNAL", message: text.trim()});
  }
}

// Errors that a repeated call cannot fix.
export const isFinal = (code) =>
  ["UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "DATA_LOSS", "INVALID_ARGUMENT"].includes(code);

// Follows a stream of events. `path` returns its address, for each attempt. `handlers` take the parsed data of events
// by their names, and the event's id. The event `end` has a handler if the caller gives one. `say` gets an error's
// text, or "" if all is well. Returns a function that ends the stream. A hidden page has no connection: a browser has
// six for all pages of a host.
export function follow(path, handlers, say) {
  let source = null,
    timer = 0,
    wait = 500,
    problem = null,
    isOver = false;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const end = () => {
    isOver = true;
    close();
    document.removeEventListener("visibilitychange", onVisibility);
  };
  const retry = () => {
    timer = setTimeout(open, wait);
    wait = Math.min(8000, wait * 2);
  };
  const open = () => {
    // The page may have been hidden and shown again while the lost stream's reason was asked for.
    if (document.hidden || source) return;
    problem = null;
    const own = (source = new EventSource(path()));
    // A closed source may still have events in its queue.
    const on = (name, take) =>
      own.addEventListener(name, (event) => {
        if (own === source) take(event.data ? JSON.parse(event.data) : {}, Number(event.lastEventId || 0));
      });
    const isWell = () => {
      wait = 500;
      say("");
    };
    for (const [name, take] of Object.entries(handlers)) {
      if (name !== "end")
        on(name, (data, sequence) => {
          isWell();
          take(data, sequence);
        });
    }
    on("connection", (error) => {
      if (error.code) say(text(error));
      else isWell();
    });
    on("disconnected", (error) => say(text(error)));
    on("connected", isWell);
    // The server closes the stream after a problem.
    on("problem", (error) => {
      problem = error;
      say(text(error));
      if (isFinal(error.code)) end();
    });
    on("end", () => {
      end();
      handlers.end?.();
    });
    own.onerror = async () => {
      if (own !== source) return;
      close();
      if (!problem) {
        say("The connection to the dashboard is lost; trying again. Is `tandem dashboard` still running?");
        // An EventSource hides the reason.
        const error = await call("GetDaemon").then(
          () => null,
          (error) => error,
        );
        if (isOver) return;
        if (error) say(text(error));
        if (error && isFinal(error.code)) return end();
      }
      retry();
    };
  };
  const onVisibility = () => {
    if (document.hidden) close();
    else if (!source) {
      close();
      open();
    }
  };
  const text = (error) =>
    error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED"
      ? `The daemon does not answer; trying again. (${error.message})`
      : error.code === "UNAUTHENTICATED"
        ? `The token or the key is no longer valid: ${error.message}`
        : error.message;
  document.addEventListener("visibilitychange", onVisibility);
  open();
  return end;
}
