// The dashboard of a study for the research group.

import { arrivalsChart, count, intervalsChart, short, traceChart } from "./charts.js";
import { byId, element } from "./dom.js";
import { addReading, forgetReadings, readings } from "./readings.js";

const STATUS_EVERY = 5000;
const RESULT_EVERY = 20000;
const COLUMNS = [
  ["coef", "private"],
  ["estimate", "unshrunk"],
  ["standard_error", "std. error"],
  ["lower", "from"],
  ["upper", "to"],
  ["jackknife_error", "jackknife s.e."],
  ["poisoned", "moved by at most"],
];

let key = null;
let shownStudy = null;

async function read(path, headers = {}) {
  const response = await fetch(path, { headers, credentials: "omit" });
  return { status: response.status, told: await response.json() };
}

const widthOf = (id) => Math.max(byId(id).clientWidth, 240);

const tile = (number, label) => element("li", {}, element("strong", {}, number), element("span", {}, label));

function showStatus(told, study) {
  const refused = Object.entries(told.refused).filter(([, reports]) => reports > 0);
  const total = refused.reduce((sum, [, reports]) => sum + reports, 0);
  const { epsilon, delta } = study.terms.budget;
  const price = study.answer.cap === null ? `ε = ${short(epsilon)}, δ = ${delta}` : `ε = ${short(epsilon)}`;
  byId("title").textContent = document.title = told.title;
  const days = `${told.opens.slice(0, 10)} to ${told.closes.slice(0, 10)}`;
  byId("state").textContent = { early: "not open yet", open: "open", closed: "closed" }[told.state] + `, ${days}`;
  byId("tiles").replaceChildren(
    tile(count(told.accepted), "reports stored"),
    tile(count(told.minimum), "needed before results"),
    tile(count(total), "reports refused"),
    tile(price, "privacy of each report"),
  );
  const left = told.minimum - told.accepted;
  const bar = element("progress", { max: told.minimum, value: told.accepted, "aria-label": "Reports towards the minimum" });
  byId("minimum").replaceChildren(
    ...(left > 0 ? [bar, `Results can be read once ${count(left)} more reports have arrived.`] : []),
  );
  const chart = told.arrivals.length > 0 ? arrivalsChart(told.arrivals, widthOf("arrivals")) : "No report has arrived yet.";
  byId("arrivals").replaceChildren(chart);
  byId("refused-none").hidden = total > 0;
  byId("refused").hidden = total === 0;
  const rows = refused.sort((a, b) => b[1] - a[1]).map(([reason, reports]) =>
    element("tr", {}, element("th", { scope: "row" }, reason), element("td", { class: "number" }, count(reports))),
  );
  byId("refused").tBodies[0].replaceChildren(...rows);
}

function showTraces(kept) {
  const names = kept.at(-1).coefficients.map(({ name }) => name);
  const known = ({ estimate, lower, upper }) => [estimate, lower, upper].every((each) => each !== null);
  const charts = names.map((name) => {
    const points = kept.flatMap(({ n, coefficients }) =>
      coefficients.filter((each) => each.name === name && known(each)).map((each) => ({ n, ...each })),
    );
    if (points.length === 0) return null;
    return element("figure", {}, element("figcaption", {}, name), traceChart(name, points));
  });
  byId("traces").replaceChildren(...charts.filter((each) => each !== null));
}

function showResult(told) {
  const known = COLUMNS.filter(([name]) => told.coefficients.some((each) => each[name] !== null));
  const head = (title, kind) => element("th", { scope: "col", class: kind }, title);
  byId("result-head").replaceChildren(head("column", ""), ...known.map(([, title]) => head(title, "number")));
  byId("coefficients").replaceChildren(
    ...told.coefficients.map((each) =>
      element("tr", {}, element("th", { scope: "row" }, each.name),
        ...known.map(([name]) => element("td", { class: "number" }, short(each[name])))),
    ),
  );
  const bounded = told.coefficients.some(({ lower }) => lower !== null);
  const percent = (share) => `${short(100 * share)}%`;
  byId("result-text").textContent = `Fitted to ${count(told.n)} reports. Each cost its participant ${told.privacy}.`;
  byId("result-notes").textContent = bounded
    ? `Intervals cover with ${percent(told.level)}, in the model's own units; each row of the chart has a scale of its own ` +
      `around 0. The last column: what ${percent(told.poisoned_share)} dishonest reports can have done at most.`
    : "There are no intervals: they need public rows (--public) and enough reports.";
  byId("result").hidden = false;
  byId("intervals").replaceChildren(...(bounded ? [intervalsChart(told.coefficients, widthOf("intervals"))] : []));
  showTraces(addReading(told.study, told));
}

async function refreshStatus() {
  try {
    const { status, told } = await read("/api/status");
    if (status !== 200) throw new Error(told.detail);
    shownStudy ??= (await read("/api/study")).told;
    showStatus(told, shownStudy);
    byId("problem").hidden = true;
  } catch {
    byId("problem").textContent = "The collector does not answer. This page tries again.";
    byId("problem").hidden = false;
  }
}

async function refreshResult() {
  if (key === null) return;
  const asked = key;
  try {
    const { status, told } = await read("/api/result", { authorization: `Bearer ${asked}` });
    if (status === 200) {
      showResult(told);
      return;
    }
    if (status === 401) key = null;
    byId("result").hidden = true;
    byId("result-text").textContent = { 401: "This is not the admin key of this collector.", 403: `Not yet: ${told.detail}.` }[status]
      ?? `The results cannot be read now: ${told.detail}.`;
  } catch {
    byId("result-text").textContent = "The collector does not answer. This page tries again.";
  }
}

function repeat(task, every) {
  const run = async () => {
    if (!document.hidden) await task();
    setTimeout(run, every);
  };
  run();
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = byId("key").value.trim().toLowerCase();
  byId("key").value = "";
  if (!/^[0-9a-f]{64}$/.test(typed)) {
    byId("result-text").textContent = "An admin key has 64 hexadecimal digits.";
    return;
  }
  key = typed;
  byId("result-text").textContent = "Reading…";
  refreshResult();
});
byId("forget").addEventListener("click", async () => {
  const { told } = await read("/api/status");
  forgetReadings(told.study);
  if (readings(told.study).length === 0) byId("traces").replaceChildren();
});
repeat(refreshStatus, STATUS_EVERY);
repeat(refreshResult, RESULT_EVERY);
