// The pages' noise and values against the test vectors, and draws for tests of their laws, printed as JSON.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { argv, stdout } from "node:process";
import { pathToFileURL } from "node:url";

const [, , pages, task, more] = argv;
const module = (name) => import(pathToFileURL(`${pages}/${name}`));

/** Bytes that two implementations can share: block j is the SHA-256 of a label and j. */
function stream(label) {
  let [held, block, consumed] = [Buffer.alloc(0), 0, 0];
  const take = (count) => {
    while (held.length < count) {
      const number = Buffer.alloc(4);
      number.writeUInt32LE(block++);
      held = Buffer.concat([held, createHash("sha256").update(label, "ascii").update(number).digest()]);
    }
    const taken = new Uint8Array(held.subarray(0, count));
    held = held.subarray(count);
    consumed += count;
    return taken;
  };
  return { take, consumed: () => consumed };
}

const tasks = {
  async gaussian() {
    const { gaussian } = await module("discrete_gaussian.js");
    return JSON.parse(readFileSync(more)).map(({ label, scale, draws }) => {
      const { take, consumed } = stream(label);
      const found = draws.map(() => Number(gaussian(scale, take)));
      return { label, scale, draws: found, consumed: consumed() };
    });
  },
  async values() {
    const { designRow, valueOf } = await module("values.js");
    const { keepsPromise } = await module("study_file.js");
    return JSON.parse(readFileSync(more)).map(({ study: text, cases }) => {
      const study = JSON.parse(text);
      const rows = cases.map(({ answers }) => designRow(study.terms, answers));
      return { kept: keepsPromise(study), cases: rows.map((row) => ({ ...row, value: valueOf(study, row) })) };
    });
  },
  async promises() {
    const { keepsPromise } = await module("study_file.js");
    return JSON.parse(readFileSync(more)).map(keepsPromise);
  },
  async quantiles() {
    const { quantile, probability } = await module("normal.js");
    const points = JSON.parse(readFileSync(more));
    return { quantiles: points.map(quantile), back: points.map((u) => probability(quantile(u))) };
  },
  async messages() {
    const { drawNoise, messageOf } = await module("message.js");
    const { study, value, count, label } = JSON.parse(readFileSync(more));
    const { take } = stream(label);
    return Array.from({ length: count }, () => Array.from(messageOf(value, drawNoise(study, take), study)));
  },
  async reports() {
    const [{ encodeReport }, { keepsPromise }] = [await module("device.js"), await module("study_file.js")];
    const { drawNoise, messageOf, valueOfAnswers } = await module("message.js");
    const { study: text, people, label } = JSON.parse(readFileSync(more));
    const [study, digest] = [JSON.parse(text), createHash("sha256").update(text).digest()];
    const { take } = stream(label);
    const made = people.map((answers) => {
      const noise = drawNoise(study, take);
      return Buffer.from(encodeReport(digest, null, messageOf(valueOfAnswers(study, answers), noise, study)));
    });
    return { kept: keepsPromise(study), reports: Buffer.concat(made).toString("base64") };
  },
  /** Words, shares and tokens of the known answers, and the shares put together again. */
  async shares() {
    const { additiveShare, seedWords, tokenFor } = await module("shares.js");
    const { shares, token } = JSON.parse(readFileSync(more));
    const found = [];
    for (const { seed: hex, integers } of shares) {
      const seed = new Uint8Array(Buffer.from(hex, "hex"));
      const words = await seedWords(seed, integers.length);
      const share = await additiveShare(integers.map(BigInt), seed);
      const other = new BigUint64Array(share.buffer);
      const joined = words.map((each, i) => String(BigInt.asIntN(64, each + other[i])));
      const told = words.map((each) => each.toString(16).padStart(16, "0"));
      found.push({ seed: hex, integers: joined.map(Number), words: told, share: Buffer.from(share).toString("hex") });
    }
    const given = new Uint8Array(Buffer.from(token, "hex"));
    const tokens = await Promise.all([0, 1].map((place) => tokenFor(given, place)));
    return { shares: found, token, tokens: tokens.map((each) => Buffer.from(each).toString("hex")) };
  },
  /** Share reports of people's answers. */
  async two() {
    const [{ encodeShares, sharesOf }, { keepsPromise }] = [await module("shares.js"), await module("study_file.js")];
    const { secureBytes } = await module("randomness.js");
    const { study: text, people, token } = JSON.parse(readFileSync(more));
    const [study, digest, take] = [JSON.parse(text), createHash("sha256").update(text).digest(), secureBytes()];
    const given = token === null ? null : new Uint8Array(Buffer.from(token, "hex"));
    const made = [];
    for (const answers of people) made.push(await encodeShares(digest, given, await sharesOf(study, answers, take(16))));
    return { kept: keepsPromise(study), reports: made.map((pair) => pair.map((each) => Buffer.from(each).toString("hex"))) };
  },
  /** Why studies with these collectors are refused at these origins; null where they are not. */
  async collectors() {
    const { checkCollectors } = await module("study_file.js");
    return JSON.parse(readFileSync(more)).map(({ collectors, cap, origin }) => {
      try {
        checkCollectors({ collectors, answer: { cap } }, origin);
        return null;
      } catch (error) {
        return error.reason ?? String(error);
      }
    });
  },
  async words() {
    const [{ english }, { german }] = [await module("words_en.js"), await module("words_de.js")];
    return { en: english, de: german };
  },
  async uniforms() {
    const { uniforms } = await module("randomness.js");
    return Array.from(uniforms(1000, stream(more).take));
  },
};

stdout.write(JSON.stringify(await tasks[task]()));
