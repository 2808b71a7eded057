// How a value is made private: by integer noise or by a unit vector, as the study says.

import { gaussian } from "./discrete_gaussian.js";
import { drawUnitNoise, unitMessage } from "./unit_vector.js";
import { designRow, valueOf } from "./values.js";

const LARGEST = 2 ** 31 - 1;

/**
 * All the noise of one message. It is drawn before the answers are known and serves once. Made-up answers need no
 * pool of candidates `ahead`: it makes no difference to the law.
 */
export function drawNoise({ answer }, take, ahead = true) {
  if (answer.cap !== null) return drawUnitNoise(answer, take, ahead);
  return Array.from({ length: answer.length }, () => Number(gaussian(answer.noise_scale, take)));
}

/** The numbers that are sent for a value, as 32-bit integers. */
export function messageOf(value, noise, { answer }) {
  if (answer.cap !== null) return unitMessage(value, answer, noise);
  const steps = value.map((each, i) => (Math.trunc(each * 2 ** answer.bits) || 0) + noise[i]);
  return Int32Array.from(steps, (each) => Math.min(Math.max(each, -LARGEST - 1), LARGEST));
}

/** The value of answers in the order of the questions. */
export const valueOfAnswers = (study, answers) => valueOf(study, designRow(study.terms, answers));
