// The worker that draws the noise. Noise never leaves it, except within a message.

import { drawNoise, messageOf, valueOfAnswers } from "./message.js";
import { secureBytes } from "./randomness.js";

const take = secureBytes();
let study = null;
let noise = null;

const tasks = {
  /** Draw all the noise of one message. */
  prepare(asked) {
    study = asked.study;
    noise = drawNoise(study, take);
    return null;
  },
  /** One message of answers. The noise serves once. */
  message({ answers }) {
    if (noise === null) throw new Error("no noise is drawn");
    const used = noise;
    noise = null;
    return messageOf(valueOfAnswers(study, answers), used, study);
  },
  /** Messages of made-up answers, each with noise of its own, and the value behind them. */
  examples({ study: shown, answers, count }) {
    const value = valueOfAnswers(shown, answers);
    const drawn = () => messageOf(value, drawNoise(shown, take, false), shown);
    return { value, messages: Array.from({ length: count }, drawn) };
  },
};

self.onmessage = ({ data }) => {
  try {
    self.postMessage({ id: data.id, result: tasks[data.task](data) });
  } catch (error) {
    self.postMessage({ id: data.id, error: error.name });
  }
};
