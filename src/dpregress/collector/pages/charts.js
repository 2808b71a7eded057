// Charts of the dashboard as SVG, with a text for readers who do not see them.

import { shape } from "./dom.js";

const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en");

export const short = (value) => (value === null ? "–" : few.format(value));
export const count = (value) => whole.format(value);

const text = (content, attributes) => shape("text", attributes, content);

function chart(width, height, label, children) {
  return shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
}

/** Hours as they are, or days once there are many. `points` are `{hour, reports}`. */
function columnsOf(points) {
  const byDay = points.length > 0 && Date.parse(points.at(-1).hour) - Date.parse(points[0].hour) > 4 * 86400e3;
  const step = byDay ? 86400e3 : 3600e3;
  const sums = new Map();
  for (const { hour, reports } of points) {
    const at = Math.floor(Date.parse(hour) / step);
    sums.set(at, (sums.get(at) ?? 0) + reports);
  }
  return { step, sums, unit: byDay ? "day" : "hour" };
}

/** Reports by hour or day, so many pixels wide. */
export function arrivalsChart(points, width) {
  const { step, sums, unit } = columnsOf(points);
  const [height, bottom, top] = [220, 30, 30];
  const times = [...sums.keys()];
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const most = Math.max(...sums.values());
  const wide = (width - 24) / Math.max(last - first + 1, 12);
  const drawn = [...sums].map(([at, reports]) => {
    const size = ((height - bottom - top) * reports) / most;
    const box = { x: 12 + (at - first) * wide + 1, y: height - bottom - size, width: Math.max(wide - 2, 1), height: size };
    return shape("rect", { class: "column", ...box });
  });
  const told = (at) => new Date(at * step).toISOString().slice(0, unit === "day" ? 10 : 16).replace("T", " ");
  drawn.push(text(`most in one ${unit}: ${count(most)}`, { x: 12, y: 20 }));
  drawn.push(text(`${told(first)} UTC`, { x: 12, y: height - 9 }));
  const end = Math.min(12 + (last - first + 1) * wide, width - 12);
  if (end > 330) drawn.push(text(`${told(last)} UTC`, { x: end, y: height - 9, "text-anchor": "end" }));
  return chart(width, height, `Reports by ${unit} from ${told(first)} to ${told(last)}; at most ${most} in one ${unit}`, drawn);
}

/** Estimates with intervals, each row in multiples of its own interval, so that all units fit; 0 is marked. */
export function intervalsChart(coefficients, width) {
  const rows = coefficients.filter(({ lower, upper }) => lower !== null && upper !== null);
  const [row, left, right] = width > 560 ? [34, 240, 210] : [34, 120, 20]; // narrow charts leave numbers to the table
  const longest = Math.floor(left / 9);
  const x = (share) => left + (width - left - right) * (0.5 + share / 2);
  const drawn = [shape("line", { class: "zero", x1: x(0), x2: x(0), y1: 4, y2: rows.length * row + 4 })];
  rows.forEach(({ name, estimate, lower, upper }, i) => {
    const edge = Math.max(Math.abs(lower), Math.abs(upper)) || 1;
    const y = i * row + 22;
    const shown = name.length > longest ? `${name.slice(0, longest - 1)}…` : name;
    drawn.push(
      text(shown, { class: "label", x: 12, y: y + 5 }),
      shape("line", { class: "whisker", x1: x(lower / edge), x2: x(upper / edge), y1: y, y2: y }),
      shape("circle", { class: "column", cx: x(estimate / edge), cy: y, r: 6 }),
    );
    if (width > 560) drawn.push(text(`${short(lower)} to ${short(upper)}`, { x: width - 12, y: y + 5, "text-anchor": "end" }));
  });
  const told = rows.map(({ name, lower, upper }) => `${name} ${short(lower)} to ${short(upper)}`).join("; ");
  return chart(width, rows.length * row + 12, `Intervals: ${told}`, drawn);
}

/** The interval of one coefficient against the number of reports. `points` are `{n, estimate, lower, upper}`. */
export function traceChart(name, points) {
  const [width, height, left, bottom] = [300, 150, 62, 24];
  const logs = points.map(({ n }) => Math.log(n));
  const span = logs.at(-1) - logs[0] || 1;
  const [low, high] = [Math.min(0, ...points.map((each) => each.lower)), Math.max(0, ...points.map((each) => each.upper))];
  const x = (i) => (points.length === 1 ? (left + width) / 2 : left + ((width - left - 12) * (logs[i] - logs[0])) / span);
  const y = (value) => 12 + ((height - bottom - 16) * (high - value)) / (high - low || 1);
  const line = (key) => points.map((each, i) => `${x(i).toFixed(1)},${y(each[key]).toFixed(1)}`);
  const band = [...line("upper"), ...line("lower").reverse()].join(" ");
  const drawn = [
    shape("line", { class: "zero", x1: left, x2: width - 12, y1: y(0), y2: y(0) }),
    shape("polygon", { class: "band", points: band }),
    shape("polyline", { class: "trace", points: line("estimate").join(" ") }),
    ...points.map((each, i) => shape("line", { class: "band trace", x1: x(i), x2: x(i), y1: y(each.lower), y2: y(each.upper) })),
    text(short(high), { x: left - 6, y: 18, "text-anchor": "end" }),
    text(short(low), { x: left - 6, y: height - bottom, "text-anchor": "end" }),
    text(`${count(points[0].n)}`, { x: left, y: height - 6 }),
    text(points.length > 1 ? `${count(points.at(-1).n)} reports` : "reports", { x: width - 12, y: height - 6, "text-anchor": "end" }),
  ];
  const [first, last] = [points[0], points.at(-1)];
  const told = `${name}: ${short(first.lower)} to ${short(first.upper)} at ${first.n} reports, ` +
    `${short(last.lower)} to ${short(last.upper)} at ${last.n}`;
  return chart(width, height, told, drawn);
}
