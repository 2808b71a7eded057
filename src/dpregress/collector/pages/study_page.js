// The page of a study for participants.

import { Demonstration } from "./demonstration.js";
import { NoiseWorker, encodeReport } from "./device.js";
import { encodeShares } from "./shares.js";
import { ShareReview, whoSees } from "./share_review.js";
import { byId, element, speak } from "./dom.js";
import { canKeep, keepOnce, keptReport } from "./keeping.js";
import { firstUnreadable, readAnswers, showQuestions } from "./questionnaire.js";
import { Review } from "./review.js";
import { Refusal, fetchStudy, guessingRate, invitationIn } from "./study_file.js";
import { preferred, wordsIn } from "./words.js";

const HEADER = 84;

/** What the page shows, in the language that is chosen. */
class Page {
  constructor(invitation, { record, digest, hash }, state) {
    [this.study, this.digest, this.hash, this.token] = [record, digest, hash, invitation.token];
    [this.state, this.language, this.review, this.making] = [state, preferred(record.terms.languages), null, false];
    this.worker = new NoiseWorker();
    this.demonstration = new Demonstration(record, this.worker);
  }

  async start() {
    const chooser = byId("language");
    const { languages } = this.study.terms;
    chooser.replaceChildren(...languages.map((each) => element("option", { value: each, lang: each }, wordsIn(each).name(each))));
    chooser.value = this.language;
    chooser.parentElement.hidden = languages.length < 2;
    chooser.addEventListener("change", () => {
      this.language = chooser.value;
      this.speak();
    });
    const kept = await keptReport(this.hash, this.token);
    if (kept !== null) this.review = this.#reviewOf(kept, "kept");
    else if (this.state === "open") await this.worker.ask("prepare", { study: this.study });
    byId("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.make().catch(() => refuse("broken", wordsIn(this.language)));
    });
    byId("form").hidden = kept !== null || this.state !== "open";
    this.speak();
    byId("study").hidden = false;
  }

  speak() {
    const { study, language } = this;
    const words = wordsIn(language, "collectors" in study);
    this.words = words;
    document.documentElement.lang = words.language;
    document.title = study.title;
    speak(byId("title"), study.title, study.terms.languages[0]);
    for (const node of document.querySelectorAll("[data-word]")) node.textContent = words.say(node.dataset.word);
    speak(byId("consent"), study.terms.consent[language], language);
    const { opens, closes, minimum } = study.terms;
    const [from, to] = [words.time(opens), words.time(closes)];
    byId("times").textContent = words.say("times", { opens: from, closes: to, minimum: words.number(minimum, 12) });
    const { length } = study.answer;
    byId("flow-report").textContent = words.say("flowReportText", { count: length, bytes: HEADER + 4 * length });
    if (study.collectors) whoSees(study, words, location.host);
    byId("guess").textContent = words.say("guess", { rate: Math.ceil(100 * guessingRate(study)) });
    this.#details(words);
    showQuestions(byId("questions"), study.terms.questions, language, words);
    const notice = { early: ["notOpen", { opens: from }], closed: ["closed", { closes: to }] }[this.state];
    byId("status").textContent = notice === undefined ? "" : words.say(...notice);
    this.demonstration.words = words;
    this.demonstration.show();
    if (this.review !== null) {
      this.review.words = words;
      this.review.show();
    }
  }

  #details(words) {
    const { answer, terms } = this.study;
    const { epsilon, delta } = terms.budget;
    const price = answer.cap === null ? `ε = ${words.number(epsilon)}, δ = ${delta}` : `ε = ${words.number(epsilon)}`;
    const gaussian = () => words.say("mechanismGaussian", { scale: words.number(answer.noise_scale, 12), bits: answer.bits });
    const rows = {
      detailPrice: price,
      detailMechanism: answer.cap === null ? gaussian() : words.say("mechanismUnit"),
      detailVersion: String(terms.version),
      detailStudy: this.hash,
    };
    byId("details").replaceChildren(
      ...Object.entries(rows).flatMap(([key, text]) => [element("dt", {}, words.say(key)), element("dd", {}, text)]),
    );
  }

  #reviewOf(kept, origin) {
    if (this.study.collectors) return new ShareReview(this.study.collectors, this.hash, this.token, kept, origin);
    return new Review(this.hash, this.token, kept, origin);
  }

  #message() {
    return this.worker.ask("message", { answers: readAnswers(byId("form"), this.study.terms.questions) });
  }

  /** The report, kept before anybody sees it. */
  async #makeReport() {
    let origin = "kept"; // another tab may have been faster
    const kept = await keepOnce(this.hash, this.token, async () => {
      origin = "made";
      return { bytes: encodeReport(this.digest, this.token, await this.#message()), state: "made" };
    });
    return [kept, origin];
  }

  /** Two shares in the memory of the page: together they are the answers, so they are not kept before they are sent. */
  async #split() {
    const kept = await keptReport(this.hash, this.token);
    if (kept !== null) return [kept, "kept"];
    const shares = await encodeShares(this.digest, this.token, await this.#message());
    return [{ shares, arrived: [false, false], ended: null }, "made"];
  }

  async make() {
    const unreadable = firstUnreadable(byId("questions"), this.words);
    if (unreadable !== null) {
      unreadable.focus();
      return;
    }
    if (this.making) return; // the button was pressed twice
    this.making = true;
    const [kept, origin] = await (this.study.collectors ? this.#split() : this.#makeReport());
    byId("form").reset();
    byId("questions").replaceChildren();
    byId("form").hidden = true;
    this.review = this.#reviewOf(kept, origin);
    this.review.words = this.words;
    this.review.show();
    byId("review").focus();
    byId("review").scrollIntoView({ block: "start" });
  }
}

function refuse(reason, words) {
  document.documentElement.lang = words.language;
  byId("status").textContent = "";
  byId("study").hidden = true;
  byId("refusal").textContent = words.say(reason);
  byId("refusal").hidden = false;
}

/** Whether the collector takes reports now; its own clock decides when they arrive. */
async function stateOf() {
  try {
    return (await (await fetch("/api/status", { credentials: "omit" })).json()).state ?? "open";
  } catch {
    return "open";
  }
}

async function main() {
  const words = wordsIn(navigator.language);
  byId("language").parentElement.hidden = true;
  byId("status").textContent = words.say("loading");
  try {
    if (!window.isSecureContext) throw new Refusal("insecure");
    if (!(await canKeep())) throw new Refusal("noKeeping");
    const invitation = invitationIn(location.hash);
    const [study, state] = await Promise.all([fetchStudy(invitation), stateOf()]);
    const page = new Page(invitation, study, state);
    await page.start();
  } catch (error) {
    refuse(error instanceof Refusal ? error.reason : "broken", words);
  }
}

window.addEventListener("hashchange", () => location.reload());
main();
