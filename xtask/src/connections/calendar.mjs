// A calendar on a real CalDAV server: Debian's Radicale.

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { Home, until } from "./program.mjs";

const LOGIN = Buffer.from("ann:a-password-4711").toString("base64");

/** Each Monday at ten in Berlin, over the change of the clocks, as another program writes it. */
const WEEKLY = `BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//another program//EN
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:20001029T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:20000326T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
UID:weekly
DTSTAMP:20261001T000000Z
DTSTART;TZID=Europe/Berlin:20261019T100000
DTEND;TZID=Europe/Berlin:20261019T110000
RRULE:FREQ=WEEKLY;COUNT=5
SUMMARY:Stand-up
END:VEVENT
END:VCALENDAR
`.replaceAll("\n", "\r\n");

/** A port that is free at this moment. Radicale cannot choose one and say which. */
async function freePort() {
  const holder = createServer();
  await once(holder.listen(0, "127.0.0.1"), "listening");
  const { port } = holder.address();
  holder.close();
  return port;
}

/** Starts Radicale with one user and an empty calendar. */
async function startRadicale(folder) {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  writeFileSync(join(folder, "users"), "ann:a-password-4711\n");
  writeFileSync(join(folder, "config"), `[server]
hosts = 127.0.0.1:${port}
[auth]
type = htpasswd
htpasswd_filename = ${join(folder, "users")}
htpasswd_encryption = plain
[storage]
filesystem_folder = ${join(folder, "collections")}
`);
  const child = spawn("radicale", ["--config", join(folder, "config")], { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}/ann/home`;
  const send = (method, path, body) => fetch(url + path, { method, body, headers: { authorization: `Basic ${LOGIN}` } });
  await until(() => "Radicale answers", () => send("OPTIONS", "/").catch(() => null));
  const made = await send("MKCALENDAR", "/");
  if (made.status !== 201) throw new Error(`MKCALENDAR: ${made.status}`);
  return { url, send, stop: () => child.kill() };
}

function homeOf(program, folder, url, login) {
  const home = new Home(program, folder, { LOGIN: login });
  const entry = (what) => `{ allow = "${what}", to-private = true }`;
  home.write("sallyport.toml", `[settings.calendar]\ncalendar_url = "${url}/"\ntime_zone = "Europe/Berlin"\n`);
  home.write("policy.toml", `[secret.calendar]
env = "LOGIN"

[plugin.calendar]
net = [${entry(`REPORT ${url}/`)}, ${entry(`GET,PUT,DELETE ${url}/*`)}]
secrets = [{ name = "calendar", to = "${new URL(url).origin}", header = "Authorization", format = "Basic {}" }]

[[rule]]
tool = "calendar.*"
decision = "allow"
`);
  return home;
}

/** Works with a calendar through the plugin. */
export async function walkCalendar(program, folder, plugins, check) {
  const radicale = await startRadicale(join(folder, "radicale"));
  const home = homeOf(program, join(folder, "home"), radicale.url, LOGIN);
  cpSync(join(plugins, "calendar"), join(home.folder, "plugins/calendar"), { recursive: true });
  try {
    await walkOneEvent(home, check);
    await radicale.send("PUT", "/weekly.ics", WEEKLY);
    await walkSeries(home, check);
    const stranger = homeOf(program, join(folder, "stranger"), radicale.url, Buffer.from("ann:wrong").toString("base64"));
    cpSync(join(plugins, "calendar"), join(stranger.folder, "plugins/calendar"), { recursive: true });
    const refused = await stranger.call("calendar.list_today");
    check("calendar: a refused password says what to do", JSON.stringify(refused).includes("check the secret calendar"), refused);
    const found = home.search([LOGIN, "a-password-4711"]);
    check("calendar: the password is in no file and no output", found.length === 0, found);
  } finally {
    radicale.stop();
  }
}

const list = async (home, from, to) => (await home.call("calendar.list_events", { from, to })).result?.events ?? [];
const starts = async (home, from, to) => (await list(home, from, to)).map(({ start }) => start).join(" ");

async function walkOneEvent(home, check) {
  const empty = await home.call("calendar.list_today");
  check("calendar: an empty one has no events", empty.outcome === "completed" && empty.result.events.length === 0, empty);
  const today = new Intl.DateTimeFormat("sv", { timeZone: "Europe/Berlin" }).format(new Date());
  const added = await home.call("calendar.add_event", { title: "Tea; with Ann, \"soon\" 🍵", start: `${today}T14:00`, location: "Köln\nHbf" });
  check("calendar: an event is added", added.outcome === "completed", added);
  const { events } = (await home.call("calendar.list_today")).result;
  check("calendar: it is listed today, with its text", events.length === 1 && events[0].title === "Tea; with Ann, \"soon\" 🍵" && events[0].location === "Köln\nHbf", events);
  const { id } = events[0];
  await home.call("calendar.move_event", { id, start: "2026-07-01T09:30" });
  const moved = await list(home, "2026-07-01", "2026-07-01");
  check("calendar: it is moved, and as long as before", moved[0]?.start === "2026-07-01T09:30:00+02:00" && moved[0]?.end === "2026-07-01T10:30:00+02:00", moved);
  const days = await home.call("calendar.add_event", { title: "Away", start: "2026-12-24", end: "2026-12-26" });
  check("calendar: whole days are listed", (await starts(home, "2026-12-26", "2026-12-26")) === "2026-12-24" && (await starts(home, "2026-12-27", "2026-12-28")) === "", days);
  for (const one of [id, days.result.id]) await home.call("calendar.remove_event", { id: one });
  check("calendar: events are removed", (await starts(home, "2026-06-01", "2026-12-31")) === "");
}

async function walkSeries(home, check) {
  const range = ["2026-10-01", "2026-12-31"];
  const all = ["2026-10-19T10:00:00+02:00", "2026-10-26T10:00:00+01:00", "2026-11-02T10:00:00+01:00", "2026-11-09T10:00:00+01:00", "2026-11-16T10:00:00+01:00"];
  check("calendar: a series is expanded over the change of the clocks", (await starts(home, ...range)) === all.join(" "), await starts(home, ...range));
  check("calendar: a range has the times in it", (await starts(home, "2026-11-02", "2026-11-09")) === all.slice(2, 4).join(" "));
  await home.call("calendar.remove_event", { id: "weekly.ics", occurrence: "2026-11-02T10:00" });
  check("calendar: one time is removed", (await starts(home, ...range)) === all.toSpliced(2, 1).join(" "), await starts(home, ...range));
  await home.call("calendar.move_event", { id: "weekly.ics", occurrence: "2026-11-09T10:00", start: "2026-11-10T14:00" });
  const moved = [all[0], all[1], "2026-11-10T14:00:00+01:00", all[4]];
  check("calendar: one time is moved", (await starts(home, ...range)) === moved.join(" "), await starts(home, ...range));
  const later = await home.call("calendar.move_event", { id: "weekly.ics", occurrence: "2026-10-26T10:00", start: "2026-10-26T11:00", all_times: true });
  const movedAll = [all[0].replace("T10", "T11"), all[1].replace("T10", "T11"), moved[2], all[4].replace("T10", "T11")];
  check("calendar: a series is moved", (await starts(home, ...range)) === movedAll.join(" "), later);
  await home.call("calendar.remove_event", { id: "weekly.ics", occurrence: "2026-11-10T14:00" });
  check("calendar: a time that was moved is removed", (await starts(home, ...range)) === movedAll.toSpliced(2, 1).join(" "));
  await home.call("calendar.remove_event", { id: "weekly.ics" });
  check("calendar: a series is removed", (await starts(home, ...range)) === "");
}
