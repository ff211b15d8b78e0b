// The jobs that wait, the next first, and the users.

import {call} from "./api.js";
import {h, table, update} from "./dom.js";
import {duration, id, seconds, shortEnum, time} from "./format.js";
import {poll} from "./poll.js";

export function showQueue({root, say, signal}) {
  document.title = "Queue · Tandem";
  const note = h("p", {class: "dim"}),
    jobs = h("div"),
    users = h("div");
  root.append(h("h1", {}, "Queue"), note, jobs, h("h2", {}, "Users"), users);
  const most = (used, limit) => (limit ? `${used ?? 0} of ${limit}` : (used ?? 0));
  poll(
    async () => {
      const queue = await call("ListQueue", {page_size: 1000}, signal);
      const waiting = queue.jobs ?? [];
      const total = queue.total_size ?? 0;
      note.textContent =
        total === 0
          ? "No jobs wait."
          : total > waiting.length
            ? `The first ${waiting.length} of ${total} jobs that wait.`
            : total === 1
              ? "1 job waits."
              : `${total} jobs wait.`;
      // "in 5 min" grows old.
      update(jobs, `${Math.floor(Date.now() / 10_000)} ${JSON.stringify(waiting)}`, () =>
        waiting.length === 0
          ? []
          : table(
              "Jobs that wait",
              [
                {title: "#", number: true},
                {title: "Job"},
                {title: "User"},
                {title: "Priority", number: true},
                {title: "Devices", number: true},
                {title: "Estimated start"},
                {title: "Latest start"},
                {title: "Reason"},
                {title: "Details"},
              ],
              waiting.map((one) => ({
                cells: [
                  one.waiting?.position ?? "",
                  h("a", {class: "state", href: `#/jobs/${id(one.job)}`}, id(one.job)),
                  one.user,
                  one.raised_by ? `${one.priority ?? 0} + ${one.raised_by}` : (one.priority ?? 0),
                  one.devices ?? 0,
                  one.waiting?.estimated_start_time
                    ? `in ${duration(Math.max(0, seconds(one.waiting.estimated_start_time) - Date.now() / 1000))}`
                    : "–",
                  time(one.waiting?.latest_start_time),
                  h("span", {class: "state"}, shortEnum(one.waiting?.reason, "REASON_")),
                  h("span", {class: "details"}, one.waiting?.message ?? ""),
                ],
              })),
            ),
      );
      update(users, JSON.stringify(queue.users ?? []), () =>
        (queue.users ?? []).length === 0
          ? h("p", {class: "dim"}, "No user has had a job yet.")
          : table(
              "Users",
              [
                {title: "User"},
                {title: "Recent device time", number: true},
                {title: "Devices", number: true},
                {title: "Queued jobs", number: true},
              ],
              queue.users.map((one) => ({
                cells: [
                  one.user,
                  duration(one.device_seconds ?? 0),
                  most(one.devices, one.max_devices),
                  most(one.queued_jobs, one.max_queued_jobs),
                ],
              })),
            ),
      );
    },
    2000,
    {say, signal},
  );
}
