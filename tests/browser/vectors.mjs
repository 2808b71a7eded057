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
