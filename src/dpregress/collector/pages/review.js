// The report as its participant sees it: shown part by part, downloaded, sent, and sent again.

import { messageIn } from "./device.js";
import { byId, element } from "./dom.js";
import { noteReceived } from "./keeping.js";
import { sendReport } from "./sending.js";
import { hexOf } from "./study_file.js";

function partsOf(bytes, token, words) {
  const parts = [
    [words.say("partStudy"), hexOf(bytes.subarray(4, 36))],
    [words.say("partId"), hexOf(bytes.subarray(36, 52))],
    [words.say("partToken"), token === null ? words.say("none") : hexOf(bytes.subarray(52, 84))],
  ];
  messageIn(bytes).forEach((each, i) => parts.push([words.say("partNumber", { row: i + 1 }), String(each)]));
  return parts.map(([name, content]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, element("code", {}, content))),
  );
}

/** Shows one kept report. `origin` is "made" now, or "kept" from an earlier visit. */
export class Review {
  #outcome = null;
  #sending = false;

  constructor(hash, token, { bytes, state }, origin) {
    [this.hash, this.token, this.bytes, this.state, this.origin, this.words] = [hash, token, bytes, state, origin, null];
    byId("download").href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    byId("download").download = `report-${hexOf(bytes.subarray(36, 40))}.dpr`;
    byId("send").addEventListener("click", () => this.#send());
  }

  show() {
    const { words } = this;
    const told = { made: "reviewMade", kept: "reviewKept" }[this.origin];
    byId("review-text").textContent = words.say(this.state === "received" ? "reviewReceived" : told);
    byId("parts").replaceChildren(...partsOf(this.bytes, this.token, words));
    byId("send").textContent = words.say(this.state === "received" ? "sendAgain" : "send");
    if (this.#outcome !== null) byId("outcome").textContent = this.#outcome();
    byId("review").hidden = false;
  }

  #tell(key, values = {}) {
    this.#outcome = () => this.words.say(key, values);
    byId("outcome").textContent = this.#outcome();
  }

  async #send() {
    if (this.#sending) return; // the button keeps the focus, so it is not disabled
    this.#sending = true;
    byId("send").setAttribute("aria-disabled", "true");
    this.#tell("sending");
    const { status, reason } = await sendReport(this.bytes, (seconds) => this.#tell("waiting", { seconds }));
    this.#sending = false;
    byId("send").removeAttribute("aria-disabled");
    if (status === 201 || status === 200) {
      this.state = "received";
      await noteReceived(this.hash, this.token, this.bytes).catch(() => {}); // it is kept all the same
      this.#tell(status === 201 ? "received" : "repeated");
    } else {
      const key = this.words.has(reason) ? reason : "other";
      this.#outcome = () => this.words.say("failed", { why: this.words.say(key, { status }) });
    }
    this.show();
  }
}
