// Two shares as their participant sees them: who sees what, shown part by part, downloaded, and sent until both arrive.

import { byId, element } from "./dom.js";
import { noteArrived } from "./keeping.js";
import { sendReport } from "./sending.js";
import { numbersIn } from "./shares.js";
import { collectorAt, hexOf } from "./study_file.js";

const HEADER = 84;
const SEED = 16;
const DOWNLOADS = ["download", "download-second"];
const STORED = [200, 201];

/** Say in words and in the picture what each collector sees, and what the server of this page could do. */
export function whoSees({ collectors, answer }, words, host) {
  const { length } = answer;
  const [one, other] = collectors.map(({ name }) => name);
  byId("flow-report").closest("ol").classList.add("two");
  byId("flow-to").textContent = words.say("flowTo", { name: one });
  byId("flow-report").textContent = words.say("flowSeed", { bytes: HEADER + SEED });
  byId("flow-second-to").textContent = words.say("flowTo", { name: other });
  byId("flow-second-report").textContent = words.say("flowWords", { count: length, bytes: HEADER + 8 * length });
  byId("flow-second").hidden = byId("who").hidden = false;
  const told = [
    words.say("whoOne", { name: one, address: collectors[0].address }),
    words.say("whoOther", { name: other, address: collectors[1].address, count: length }),
    words.say("whoBoth", { one, other }),
    words.say("whoServes", { host }),
  ];
  byId("who").replaceChildren(...told.map((each) => element("li", {}, each)));
}

/** Shows two kept shares. `origin` is "made" now, or "kept" from an earlier visit. */
export class ShareReview {
  #told = [null, null];
  #sending = false;

  constructor(collectors, hash, token, kept, origin) {
    [this.collectors, this.hash, this.token, this.kept, this.origin] = [collectors, hash, token, kept, origin];
    this.words = null;
    kept.shares.forEach((bytes, place) => {
      if (bytes === null) return;
      const link = byId(DOWNLOADS[place]);
      link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
      link.download = `${collectors[place].name}.share`;
    });
    byId("send").addEventListener("click", () => this.#send());
  }

  get #arrived() {
    return this.kept.arrived.every((each) => each);
  }

  show() {
    const { words, kept, collectors } = this;
    const told = { made: "reviewMade", kept: "reviewKept" }[this.origin];
    byId("review-text").textContent = words.say(this.#arrived ? "reviewReceived" : told);
    byId("parts").replaceChildren(...collectors.flatMap(({ name }, place) => this.#partsOf(kept.shares[place], name, place)));
    byId("send").hidden = this.#arrived;
    DOWNLOADS.forEach((id, place) => {
      byId(id).textContent = words.say("downloadShare", { name: collectors[place].name });
      byId(id).hidden = kept.shares[place] === null;
    });
    this.#say();
    byId("review").hidden = false;
  }

  #partsOf(bytes, name, place) {
    const { words } = this;
    const row = (title, content) =>
      element("tr", {}, element("th", { scope: "row" }, title), element("td", {}, element("code", {}, content)));
    const head = element("tr", {}, element("th", { scope: "rowgroup", colspan: 2 }, words.say("partFor", { name })));
    if (bytes === null) return [head, row(words.say("partNone"), words.say("partErased"))];
    return [
      head,
      row(words.say("partStudy"), hexOf(bytes.subarray(4, 36))),
      row(words.say("partId"), hexOf(bytes.subarray(36, 52))),
      row(words.say("partToken"), this.token === null ? words.say("none") : hexOf(bytes.subarray(52, 84))),
      ...numbersIn(bytes, place).map((each, i) => row(words.say(place === 0 ? "partSeed" : "partNumber", { row: i + 1 }), each)),
    ];
  }

  #say() {
    byId("outcome").textContent = this.#told.filter((each) => each !== null).map((each) => each()).join(" ");
  }

  #tell(place, key, values = {}) {
    const { name } = this.collectors[place];
    this.#told[place] = () => this.words.say(key, { ...values, name, why: values.why?.() });
    this.#say();
  }

  async #send() {
    if (this.#sending) return; // the button keeps the focus, so it is not disabled
    this.#sending = true;
    byId("send").setAttribute("aria-disabled", "true");
    await Promise.all(this.kept.shares.map((bytes, place) => (this.kept.arrived[place] ? null : this.#sendOne(bytes, place))));
    this.#sending = false;
    byId("send").removeAttribute("aria-disabled");
    this.show();
    if (this.#arrived) byId("review").focus();
  }

  /** Send one share to its own collector, by the address in the study. */
  async #sendOne(bytes, place) {
    this.#tell(place, "shareSending");
    const wait = (seconds) => this.#tell(place, "shareWaiting", { seconds });
    const { status, reason } = await sendReport(bytes, wait, collectorAt(this.collectors[place].address).origin);
    if (!STORED.includes(status)) {
      const key = this.words.has(reason) ? reason : "other";
      this.#tell(place, "shareFailed", { why: () => this.words.say(key, { status }) });
      return;
    }
    const shares = this.kept.shares.map((each, i) => (i === place ? null : each));
    const arrived = this.kept.arrived.map((each, i) => each || i === place);
    this.kept = { shares, arrived };
    await noteArrived(this.hash, this.token, place).catch(() => {}); // it is kept until a later visit
    this.#tell(place, "shareReceived");
  }
}
