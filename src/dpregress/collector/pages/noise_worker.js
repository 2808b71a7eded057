// The worker that draws the noise, or the seeds of shares. They never leave it, except within a message.

import { drawNoise, messageOf, valueOfAnswers } from "./message.js";
import { secureBytes } from "./randomness.js";
import { SEED, additiveShare, sharesOf, stepsOf } from "./shares.js";

const take = secureBytes();
let study = null;
let noise = null;

const tasks = {
  /** Draw all the noise of one message. */
  prepare(asked) {
    study = asked.study;
    noise = study.collectors ? take(SEED) : drawNoise(study, take);
    return null;
  },
  /** One message of answers. The noise serves once. */
  message({ answers }) {
    if (noise === null) throw new Error("no noise is drawn");
    const used = noise;
    noise = null;
    if (study.collectors) return sharesOf(study, answers, used);
    return messageOf(valueOfAnswers(study, answers), used, study);
  },
  /** Messages of made-up answers, each with noise of its own, and the value behind them. */
  async examples({ study: shown, answers, count }) {
    const value = valueOfAnswers(shown, answers);
    if (shown.collectors) return { value, messages: await shareExamples(value, shown, count) };
    const drawn = () => messageOf(value, drawNoise(shown, take, false), shown);
    return { value, messages: Array.from({ length: count }, drawn) };
  },
};

/** What the second collector may get, in parts of 2^63. */
async function shareExamples(value, shown, count) {
  const drawn = Array.from({ length: count }, () => additiveShare(stepsOf(value, shown), take(SEED)));
  return (await Promise.all(drawn)).map((share) => Array.from(new BigInt64Array(share.buffer), (each) => Number(each) / 2 ** 63));
}

self.onmessage = async ({ data }) => {
  try {
    self.postMessage({ id: data.id, result: await tasks[data.task](data) });
  } catch (error) {
    self.postMessage({ id: data.id, error: error.name });
  }
};
