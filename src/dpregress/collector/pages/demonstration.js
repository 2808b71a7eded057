// A slider of made-up answers: values move a little, the dots of possible reports hardly do.

import { byId, shape } from "./dom.js";

const [REPORTS, NUMBERS] = [40, 4000]; // at most, at each move of the slider
const ROWS = 6;
const [ROW, LEFT] = [34, 12];

/** Answers of an invented person between the lowest and the highest ones. */
export function inventedAnswers(questions, share) {
  return questions.map((question) => {
    if (question.kind === "number") return question.lower + share * (question.upper - question.lower);
    return question.levels[Math.min(Math.floor(share * question.levels.length), question.levels.length - 1)];
  });
}

function plotOf(value, messages, edge, label, width) {
  const rows = Math.min(ROWS, value.length);
  const height = rows * ROW + 8;
  const x = (number) => LEFT + (width - 2 * LEFT) * (0.5 + Math.min(Math.max(number / edge, -1), 1) / 2);
  const drawn = [shape("line", { class: "zero", x1: x(0), x2: x(0), y1: 2, y2: height - 2 })];
  for (let row = 0; row < rows; row++) {
    const y = row * ROW + ROW / 2 + 4;
    drawn.push(shape("line", { class: "axis", x1: LEFT, x2: width - LEFT, y1: y, y2: y }));
    for (const message of messages) drawn.push(shape("circle", { class: "dot", cx: x(message[row]), cy: y, r: 4 }));
    drawn.push(shape("line", { class: "truth", x1: x(value[row]), x2: x(value[row]), y1: y - 13, y2: y + 13 }));
  }
  const told = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label };
  return shape("svg", told, ...drawn);
}

/** Draw the plot again whenever the slider moves or the language changes. */
export class Demonstration {
  #busy = false;
  #again = false;

  constructor(study, worker) {
    [this.study, this.worker, this.words] = [study, worker, null];
    const { bits, cap, bound, noise_scale: scale } = study.answer;
    // Unit vectors are shown in shares of the bound: their length is fixed. The axis of words is all numbers of 64 bits.
    this.unit = study.collectors ? bound : 2 ** -bits * (cap === null ? 1 : bound);
    this.reports = Math.max(Math.min(REPORTS, Math.floor(NUMBERS / study.answer.length)), 10);
    this.edge = cap === null && !study.collectors ? bound + 2.5 * scale * this.unit : bound;
    byId("slider").addEventListener("input", () => this.show());
  }

  async show() {
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    do {
      this.#again = false;
      await this.#draw();
    } while (this.#again);
    this.#busy = false;
  }

  async #draw() {
    const { study, words } = this;
    const answers = inventedAnswers(study.terms.questions, Number(byId("slider").value) / 100);
    const { value, messages } = await this.worker.ask("examples", { study, answers, count: this.reports });
    const scaled = messages.map((message) => Array.from(message, (each) => each * this.unit));
    const [plot, label] = [byId("plot"), words.say("plotLabel", { reports: this.reports })];
    plot.replaceChildren(plotOf(value, scaled, this.edge, label, Math.max(plot.clientWidth - 12, 240)));
    const first = scaled.map((message) => message[0]);
    const told = { value: value[0], low: Math.min(...first), high: Math.max(...first), edge: this.edge };
    const shown = Object.fromEntries(Object.entries(told).map(([name, each]) => [name, words.number(each, 2)]));
    const counts = { reports: this.reports, rows: Math.min(ROWS, value.length), count: value.length };
    byId("plot-text").textContent = words.say("plotText", { ...shown, ...counts });
  }
}
