// Plays one scene in the Chromium of the system. The scene comes as JSON, and what happened goes out as JSON.

import { readFileSync } from "node:fs";
import { stdin, stdout } from "node:process";
import { chromium } from "playwright-core";

const scene = JSON.parse(readFileSync(stdin.fd));
const SIZES = { wide: { width: 1200, height: 900 }, phone: { width: 390, height: 844 } };

const browser = await chromium.launch({
  executablePath: scene.chromium,
  args: ["--host-resolver-rules=MAP insecure.example 127.0.0.1"],
});
const context = await browser.newContext({
  viewport: SIZES[scene.size ?? "wide"],
  locale: scene.locale ?? "en-GB",
  colorScheme: scene.colours ?? "light",
});
context.setDefaultTimeout(60_000);
const seen = { requests: [], errors: [], widths: [], unlabelled: [], sockets: 0 };
const bodyOf = (request) => request.postDataBuffer()?.toString("base64") ?? null;
context.on("request", (request) =>
  seen.requests.push({ method: request.method(), url: request.url(), headers: request.headers(), body: bodyOf(request) }),
);

async function newPage() {
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("websocket", () => (seen.sockets += 1));
  return page;
}

let shots = 0;

/** Note what is too wide and what has no name; take a picture if one is wanted. */
async function look(page) {
  seen.widths.push(await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]));
  const nameless = () =>
    [...document.querySelectorAll("input, select, button")]
      .filter((each) => each.checkVisibility() && !each.labels?.length && !each.textContent.trim())
      .map((each) => each.id);
  seen.unlabelled.push(...(await page.evaluate(nameless)));
  if (scene.shots) await page.screenshot({ path: `${scene.shots}-${++shots}.png`, fullPage: true });
}

async function answer(page) {
  for (const [place, { kind, fill }] of scene.answers.entries()) {
    const name = `question-${place}`;
    if (kind === "number") await page.fill(`#${name}`, fill);
    else await page.check(`input[name="${name}"][value="${fill}"]`);
  }
}

/** Press Tab until an element that fits has the focus. */
async function tabTo(page, selector) {
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((fits) => document.activeElement?.matches(fits) ?? false, selector)) return;
  }
  throw new Error(`Tab does not reach ${selector}`);
}

const said = (page, id, pattern) =>
  page.waitForFunction(([where, text]) => new RegExp(text).test(document.getElementById(where).textContent), [id, pattern]);

/** Everything that the browser keeps for this origin: the reports, and the rest as text. */
const kept = (page) =>
  page.evaluate(async () => {
    const settled = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const databases = (await indexedDB.databases()).map(({ name }) => name);
    const rest = JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]);
    if (!databases.includes("dpregress")) return { databases, reports: [], rest };
    const database = await settled(indexedDB.open("dpregress"));
    const found = await settled(database.transaction("reports").objectStore("reports").getAll());
    database.close();
    const text = (bytes) => bytes && btoa(String.fromCharCode(...bytes));
    const reports = found.map(({ bytes, state, shares, arrived, ended }) =>
      shares ? { shares: shares.map(text), arrived, ended } : { report: text(bytes), state });
    return { databases, reports, rest };
  });

/** Split answers into two shares; what is offered for download, as addresses of the bytes. */
async function splitShares(page) {
  await page.addInitScript(() => {
    const revoke = URL.revokeObjectURL; // the page's policy lets no request find out whether an address is dead
    window.revoked = [];
    URL.revokeObjectURL = (url) => {
      window.revoked.push(url);
      revoke.call(URL, url);
    };
  });
  await shownStudy(page);
  await answer(page);
  await page.click("button[type=submit]");
  await page.waitForSelector("#review:not([hidden])");
  return page.evaluate(() => ["download", "download-second"].map((id) => document.getElementById(id).href));
}

/** What the page shows, offers and keeps once its shares are erased, also when it is opened again. */
async function erased(page, blobs) {
  const shown = async () => ({
    text: await page.textContent("#review-text"),
    offered: await page.evaluate(() => ["form", "send", "erase", "download", "download-second"]
      .filter((id) => document.getElementById(id).checkVisibility())),
    kept: await kept(page),
  });
  seen.outcome = await page.textContent("#outcome");
  seen.focus = await page.evaluate(() => document.activeElement.id);
  seen.hrefs = await page.evaluate(() => document.querySelectorAll("#review a[href]").length);
  seen.dead = await page.evaluate((urls) => urls.map((url) => window.revoked.includes(url)), blobs);
  seen.now = await shown();
  await look(page);
  await page.reload();
  await page.waitForSelector("#review:not([hidden])");
  seen.later = await shown();
}

async function shownStudy(page) {
  await page.goto(scene.link);
  await page.waitForSelector("#study:not([hidden])");
  await page.waitForSelector("#plot svg");
}

async function readResults(page, key) {
  await page.fill("#key", key);
  await page.click("#key-form button");
  await said(page, "result-text", "^(?!Reading).+");
  return page.textContent("#result-text");
}

const scenes = {
  /** Answer, make the report, lose it once on the way, send it, send it again, come back and send it again. */
  async participate() {
    const page = await newPage();
    let lost = false;
    await context.route("**/api/reports", (route) => {
      if (lost) return route.continue();
      lost = true;
      return route.abort();
    });
    await shownStudy(page);
    await page.fill("#slider", "80");
    await answer(page);
    await look(page);
    await page.click("button[type=submit]");
    await page.waitForSelector("#review:not([hidden])");
    seen.keptBefore = await kept(page);
    seen.posted = seen.requests.filter(({ method }) => method === "POST").length;
    seen.focus = await page.evaluate(() => document.activeElement.id);
    seen.left = await page.evaluate(() => document.querySelectorAll("#questions input").length);
    await look(page);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
    seen.download = readFileSync(await download.path()).toString("base64");
    await page.click("#send");
    await said(page, "outcome", "Received|Angekommen");
    await look(page);
    await page.click("#send");
    await said(page, "outcome", "already|schon");
    await page.reload();
    await page.waitForSelector("#review:not([hidden])");
    seen.formAfter = await page.isVisible("#form");
    await page.click("#send");
    await said(page, "outcome", "already|schon");
    seen.keptAfter = await kept(page);
  },

  /** Split answers into two shares, send each to its collector until both have theirs, and come back. */
  async shares() {
    const page = await newPage();
    await shownStudy(page);
    await page.fill("#slider", "80");
    seen.who = await page.$$eval("#who li", (items) => items.map((each) => each.textContent));
    seen.picture = await page.$$eval(".flow li", (items) => items.map((each) => each.innerText.replace(/\s+/g, " ").trim()));
    await answer(page);
    await look(page);
    await page.click("button[type=submit]");
    await page.waitForSelector("#review:not([hidden])");
    seen.keptUnsent = await kept(page);
    seen.posted = seen.requests.filter(({ method }) => method === "POST").length;
    seen.left = await page.evaluate(() => document.querySelectorAll("#questions input").length);
    await look(page);
    seen.downloads = [];
    for (const id of ["#download", "#download-second"]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(id)]);
      seen.downloads.push([download.suggestedFilename(), readFileSync(await download.path()).toString("base64")]);
    }
    await page.click("#send");
    await said(page, "outcome", scene.comesBack ? "university: not accepted" : "university: not yet received");
    await said(page, "outcome", "clinic: received");
    seen.keptBetween = await kept(page);
    if (scene.comesBack) {
      await page.reload();
      await page.waitForSelector("#review:not([hidden])");
      seen.partsBetween = await page.textContent("#parts");
      await page.click("#send");
    }
    await said(page, "review-text", "Both collectors have their shares");
    seen.keptAfter = await kept(page);
    await look(page);
    await page.reload();
    await page.waitForSelector("#review:not([hidden])");
    seen.after = await page.textContent("#review-text");
    seen.sendAfter = await page.isVisible("#send");
    seen.formAfter = await page.isVisible("#form");
    const refused = (url) => fetch(url, { mode: "no-cors" }).then(() => false, () => true);
    seen.refused = await page.evaluate(refused, scene.elsewhere);
  },

  /** Split answers and leave: nothing is kept. Split them again, and send shares that are refused for good. */
  async refusedShares() {
    const page = await newPage();
    await splitShares(page);
    seen.keptUnsent = await kept(page);
    seen.eraseUnsent = await page.isVisible("#erase");
    seen.textUnsent = await page.textContent("#review-text");
    await page.reload();
    await shownStudy(page);
    seen.formAgain = await page.isVisible("#form");
    const blobs = await splitShares(page);
    await page.click("#send");
    await said(page, "review-text", scene.says);
    await page.waitForFunction(() => !document.getElementById("send").hasAttribute("aria-disabled"));
    await erased(page, blobs);
  },

  /** Send shares while one collector cannot take its share, and erase with the keyboard what is kept. */
  async eraseShares() {
    const page = await newPage();
    const blobs = await splitShares(page);
    await page.click("#send");
    await said(page, "outcome", "clinic: received");
    await said(page, "outcome", "university: not");
    seen.keptSent = await kept(page);
    await look(page);
    await tabTo(page, "#erase");
    await page.keyboard.press("Enter");
    await said(page, "review-text", "has erased");
    await page.waitForFunction(() => !document.getElementById("send").hasAttribute("aria-disabled"));
    await erased(page, blobs);
  },

  /** Two tabs split answers, and both send: the shares of one of them count, and the other ones are dropped. */
  async shareTabs() {
    const pages = [await newPage(), await newPage()];
    for (const page of pages) await splitShares(page);
    await Promise.all(pages.map((page) => page.click("#send")));
    for (const page of pages) await said(page, "review-text", "Both collectors have their shares");
    seen.keptAfter = await kept(pages[0]);
  },

  /** A report with the keyboard alone. */
  async keyboard() {
    const page = await newPage();
    await shownStudy(page);
    await tabTo(page, "#slider");
    const before = await page.textContent("#plot-text");
    for (let i = 0; i < 20; i++) await page.keyboard.press("ArrowRight");
    await page.waitForFunction((text) => document.getElementById("plot-text").textContent !== text, before);
    for (const [place, { kind, fill }] of scene.answers.entries()) {
      await tabTo(page, `[name="question-${place}"]`);
      if (kind === "number") await page.keyboard.type(fill);
      else for (let i = 0; i <= Number(fill); i++) await page.keyboard.press("ArrowRight"); // past "no answer"
    }
    seen.chosen = await page.evaluate(() => Object.fromEntries(new FormData(document.getElementById("form"))));
    await tabTo(page, "button[type=submit]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#review:not([hidden])");
    seen.focus = await page.evaluate(() => document.activeElement.id);
    await tabTo(page, "#send");
    await page.keyboard.press("Enter");
    await said(page, "outcome", "Received");
    seen.focusAfter = await page.evaluate(() => document.activeElement.id);
    seen.live = await page.getAttribute("#outcome", "aria-live");
  },

  /** Two tabs at once make one report. */
  async tabs() {
    const pages = [await newPage(), await newPage()];
    for (const page of pages) await shownStudy(page);
    for (const page of pages) await answer(page);
    await Promise.all(pages.map((page) => page.evaluate(() => document.getElementById("form").requestSubmit())));
    for (const page of pages) await page.waitForSelector("#review:not([hidden])", { state: "attached" });
    seen.parts = await Promise.all(pages.map((page) => page.textContent("#parts")));
    seen.keptAfter = await kept(pages[0]);
  },

  /** A page that refuses. */
  async refusal() {
    const page = await newPage();
    await page.goto(scene.link);
    await page.waitForSelector("#refusal:not([hidden])");
    seen.refusal = await page.textContent("#refusal");
    seen.study = await page.isVisible("#study");
    await look(page);
  },

  /** A study that is not open. */
  async closed() {
    const page = await newPage();
    await shownStudy(page);
    seen.form = await page.isVisible("#form");
    seen.status = await page.textContent("#status");
    await look(page);
  },

  /** Messages of the page's own worker on made-up answers. */
  async draw() {
    const page = await newPage();
    await shownStudy(page);
    seen.drawn = await page.evaluate(async ([answers, count]) => {
      const { NoiseWorker } = await import("/static/device.js");
      const study = await (await fetch("/api/study")).json();
      const { value, messages } = await new NoiseWorker().ask("examples", { study, answers, count });
      return { value, messages: messages.map((each) => Array.from(each)) };
    }, [scene.made, scene.count]);
  },

  /** The languages of the study. */
  async languages() {
    const page = await newPage();
    await shownStudy(page);
    await answer(page);
    seen.spoken = [];
    for (const language of scene.languages) {
      await page.selectOption("#language", language);
      const told = () => [document.documentElement.lang, document.getElementById("consent").textContent,
        document.querySelector("#questions .legend").textContent, document.querySelector("button[type=submit]").textContent];
      seen.spoken.push(await page.evaluate(told));
    }
    seen.kept = await page.inputValue("#question-0");
    await look(page);
  },

  /** The dashboard, with several keys in turn. */
  async dashboard() {
    const page = await newPage();
    await page.goto(scene.link);
    await page.waitForSelector("#tiles strong");
    seen.told = [];
    for (const key of scene.keys) seen.told.push(await readResults(page, key));
    if (scene.earlier) {
      await page.evaluate(([name, value]) => localStorage.setItem(name, value), scene.earlier);
      await page.reload();
      await page.waitForSelector("#tiles strong");
      await readResults(page, scene.keys.at(-1));
    }
    seen.rows = await page.$$eval("#coefficients tr", (rows) => rows.map((row) => row.textContent));
    seen.traces = await page.locator("#traces svg").count();
    seen.tiles = await page.$$eval("#tiles li", (tiles) => tiles.map((tile) => tile.textContent));
    seen.refused = await page.textContent("#refused tbody");
    seen.keptAfter = await kept(page);
    await look(page);
  },
};

try {
  await scenes[scene.scene]();
  stdout.write(JSON.stringify(seen));
} catch (error) {
  process.exitCode = 1;
  console.error(String(error), JSON.stringify(seen.errors));
} finally {
  await browser.close();
}
