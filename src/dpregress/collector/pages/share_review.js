// Two shares as their participant sees them: who sees what, shown part by part, downloaded, and sent until both arrive, or
// until they are erased.

import { byId, element } from "./dom.js";
import { keepOnce, noteArrived, noteEnded } from "./keeping.js";
import { isFinal, sendReport } from "./sending.js";
import { numbersIn } from "./shares.js";
import { collectorAt, hexOf } from "./study_file.js";

const HEADER = 84;
const SEED = 16;
const DOWNLOADS = ["download", "download-second"];
const STORED = [200, 201];
const PAGE = 2; // the place of what the page itself says, after those of both collectors
/** Words for shares that were erased: before either was acknowledged, and after one was. */
const ENDED = { refused: ["reviewRefused", "reviewRefusedHalf"], erased: ["reviewErased", "reviewErasedHalf"] };

/** Say in words and in the picture what each collector sees, and what the server of this page could do. */
export function whoSees({ collectors, answer, terms }, words, host) {
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
  if (terms.enrolment === "open") told.push(words.say("whoOnce", { one, other }));
  byId("who").replaceChildren(...told.map((each) => element("li", {}, each)));
}

/**
 * Shows two shares. `origin` is "made" now, and then they are in the memory of the page only, or "kept" by the browser since
 * they were first sent.
 */
export class ShareReview {
  #told = [null, null, null];
  #linked = [null, null];
  #sending = false;
  #stop = new AbortController();

  constructor(collectors, hash, token, kept, origin) {
    [this.collectors, this.hash, this.token, this.kept, this.origin] = [collectors, hash, token, kept, origin];
    this.words = null;
    byId("send").addEventListener("click", () => this.#send());
    byId("erase").addEventListener("click", () => this.#erase());
    // Leaving the page loses shares that are not kept, also if the browser holds the page ready for a return.
    window.addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  }

  get #arrived() {
    return this.kept.arrived.every((each) => each);
  }

  /** Whether nothing is left to send. */
  get #over() {
    return this.kept.shares.every((bytes) => bytes === null);
  }

  get #summary() {
    const { arrived, ended } = this.kept;
    if (this.#arrived) return "reviewReceived";
    if (ended) return ENDED[ended][Number(arrived.includes(true))];
    return { made: "reviewMade", kept: "reviewKept" }[this.origin];
  }

  show() {
    const { words, kept, collectors } = this;
    byId("review-text").textContent = words.say(this.#summary);
    byId("parts").replaceChildren(...collectors.flatMap(({ name }, place) => this.#partsOf(kept.shares[place], name, place)));
    byId("send").hidden = this.#over;
    byId("erase").hidden = this.#over || this.origin === "made";
    this.#link();
    this.#say();
    byId("review").hidden = false;
  }

  /** Offer the shares that are left as files; no address leads to one that was erased. */
  #link() {
    DOWNLOADS.forEach((id, place) => {
      const [link, bytes, { name }] = [byId(id), this.kept.shares[place], this.collectors[place]];
      link.textContent = this.words.say("downloadShare", { name });
      link.hidden = bytes === null;
      if (bytes === this.#linked[place]) return;
      if (this.#linked[place] !== null) URL.revokeObjectURL(link.href);
      this.#linked[place] = bytes;
      link.removeAttribute("href");
      if (bytes === null) return;
      link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
      link.download = `${name}.share`;
    });
  }

  #partsOf(bytes, name, place) {
    const { words } = this;
    const row = (title, content) =>
      element("tr", {}, element("th", { scope: "row" }, title), element("td", {}, element("code", {}, content)));
    const head = element("tr", {}, element("th", { scope: "rowgroup", colspan: 2 }, words.say("partFor", { name })));
    if (bytes === null) return [head, row(words.say("partNone"), words.say(this.kept.arrived[place] ? "partErased" : "partGone"))];
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
    const name = this.collectors[place]?.name;
    this.#told[place] = () => this.words.say(key, { ...values, name, why: values.why?.() });
    this.#say();
  }

  async #send() {
    if (this.#sending) return; // the button keeps the focus, so it is not disabled
    this.#sending = true;
    [this.#stop, this.#told] = [new AbortController(), [null, null, null]];
    byId("send").setAttribute("aria-disabled", "true");
    if (await this.#keep()) {
      await Promise.all(this.kept.shares.map((bytes, place) => (bytes === null ? null : this.#sendOne(bytes, place))));
    }
    this.#sending = false;
    byId("send").removeAttribute("aria-disabled");
    this.show();
    if (this.#over) byId("review").focus();
  }

  /** Keep the shares from now on, or take what another tab keeps. Whether the browser keeps them. */
  async #keep() {
    try {
      this.kept = await keepOnce(this.hash, this.token, () => this.kept);
    } catch {
      this.#tell(PAGE, "notKept");
      return false;
    }
    this.origin = "kept";
    this.show();
    return true;
  }

  /** Send one share to its own collector, by the address in the study. */
  async #sendOne(bytes, place) {
    this.#tell(place, "shareSending");
    const wait = (seconds) => this.#tell(place, "shareWaiting", { seconds });
    const { origin } = collectorAt(this.collectors[place].address);
    const found = await sendReport(bytes, wait, origin, this.#stop.signal);
    if (STORED.includes(found.status)) {
      await this.#noteArrived(place);
      return;
    }
    if (this.#stop.signal.aborted && !isFinal(found)) {
      this.#told[place] = null; // it was erased before it was received
      this.#say();
      return;
    }
    const key = this.words.has(found.reason) ? found.reason : "other";
    const why = () => this.words.say(key, { status: found.status });
    this.#tell(place, isFinal(found) ? "shareRefused" : "shareFailed", { why });
    if (isFinal(found)) await this.#end("refused");
  }

  /** What is kept is taken as the store has it: the other share may be refused meanwhile, and both be erased. */
  async #noteArrived(place) {
    try {
      this.kept = await noteArrived(this.hash, this.token, place);
    } catch {
      const shares = this.kept.shares.map((each, i) => (i === place ? null : each)); // it is kept until a later visit
      const arrived = this.kept.arrived.map((each, i) => each || i === place);
      this.kept = { ...this.kept, shares, arrived };
    }
    this.#tell(place, "shareReceived");
    this.show();
  }

  /** Erase both shares and stop sending them. */
  async #end(how) {
    this.#stop.abort();
    try {
      this.kept = await noteEnded(this.hash, this.token, how);
    } catch {
      this.#tell(PAGE, "notErased");
      return;
    }
    this.show();
  }

  async #erase() {
    await this.#end("erased");
    if (!this.#over) return;
    this.#told = this.#told.map((each, place) => (this.kept.arrived[place] ? each : null)); // nothing is sent again
    this.#say();
    byId("review").focus();
  }
}
