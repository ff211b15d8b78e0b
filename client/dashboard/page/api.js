// Calls of the daemon, through the dashboard's server.

export class CallError extends Error {
  constructor(error) {
    super([error.message, ...(error.violations ?? []).map((one) => `${one.field}: ${one.description}`)].join("\n"));
    this.code = error.code;
  }
}

// Returns the response of a unary call, such as call("GetJob", {name: "jobs/x"}). Throws CallError.
export async function call(method, request = {}, signal = undefined) {
  return (await ask(`/api/${method}`,
      {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(request), signal})).json();
}

// Returns the response of a GET. Throws CallError.
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError({code: "UNAVAILABLE", message: "the dashboard does not answer: start `tandem dashboard` again"});
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
export const isFinal = (code) => ["UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "DATA_LOSS", "INVALID_ARGUMENT"].includes(code);

// Follows a stream of events. `path` returns its address for each attempt. `handlers` take the parsed data of events by their
// names, and the event's id. `say` gets an error's text, or "" after recovery. Returns a function that ends the stream.
export function follow(path, handlers, say) {
  let source = null, timer = 0, wait = 500, isOver = false;
  const end = () => {
    isOver = true;
    clearTimeout(timer);
    source?.close();
  };
  const open = () => {
    source = new EventSource(path());
    const on = (name, take) => source.addEventListener(name, (event) => {
      // Only an event proves that the connection works.
      wait = 500;
      take(event.data ? JSON.parse(event.data) : {}, Number(event.lastEventId || 0));
    });
    for (const [name, take] of Object.entries(handlers)) on(name, (data, sequence) => { say(""); take(data, sequence); });
    on("connection", (error) => say(error.code ? text(error) : ""));
    on("disconnected", (error) => say(text(error)));
    on("connected", () => say(""));
    on("problem", (error) => {
      say(text(error));
      if (isFinal(error.code)) end();
    });
    on("end", end);
    source.onerror = () => {
      source.close();
      if (isOver) return;
      say("The connection to the dashboard is lost; trying again. Is `tandem dashboard` still running?");
      timer = setTimeout(open, wait);
      wait = Math.min(8000, wait * 2);
    };
  };
  const text = (error) => error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED"
      ? `The daemon does not answer; trying again. (${error.message})`
      : error.code === "UNAUTHENTICATED" ? `The daemon no longer takes this token: ${error.message}` : error.message;
  open();
  return end;
}
