// PrivUnit: a random unit vector that is more likely near the direction of the value (docs/privacy/local-messages.md).

import { quantile } from "./normal.js";
import { uniforms } from "./randomness.js";

export const UNIT_BITS = 28;
const BATCH = 256;
const LARGEST_POOL = 2 ** 18; // numbers that are drawn ahead
const NOTHING = 1e-300;

function candidates(length, take) {
  const drawn = uniforms(BATCH * length, take).map(quantile);
  const rounded = new Int32Array(drawn.length);
  for (let i = 0; i < BATCH; i++) {
    const tried = drawn.subarray(i * length, (i + 1) * length);
    const norm = Math.hypot(...tried);
    for (let j = 0; j < length; j++) {
      tried[j] /= norm;
      rounded[i * length + j] = Math.round(tried[j] * 2 ** UNIT_BITS);
    }
  }
  return { drawn, rounded, chance: uniforms(BATCH, take) };
}

/** Everything random in a message, drawn before the value is known: a sign and candidates, or only the first few. */
export function drawUnitNoise({ length, cap }, take, ahead) {
  const wanted = ahead ? Math.min(8 * Math.exp(cap.epsilon), LARGEST_POOL / length) : 1;
  const batches = Array.from({ length: Math.max(1, Math.ceil(wanted / BATCH)) }, () => candidates(length, take));
  return { sign: uniforms(1, take)[0], batches, take };
}

/** The direction of the value or its opposite, with `value / bound` as the mean; a fixed one for 0 or no number. */
function direction(value, bound, uniform) {
  const size = value.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  const nothing = !(size > Math.max(NOTHING, NOTHING * bound) && size < Infinity);
  const scaled = nothing ? value.map((_, i) => (i === 0 ? 1 : 0)) : value.map((each) => each / size);
  const length = Math.hypot(...scaled);
  const share = nothing ? 0 : Math.min((size / bound) * length, 1);
  const sign = uniform < (1 + share) / 2 ? 1 : -1;
  return scaled.map((each) => (sign * each) / length);
}

/** The place of the first candidate that is taken, or -1. All are looked at. */
function firstTaken({ drawn, chance }, along, { epsilon, gamma }) {
  const elsewhere = Math.exp(-epsilon);
  let first = -1;
  for (let i = BATCH - 1; i >= 0; i--) {
    let cosine = 0;
    for (let j = 0; j < along.length; j++) cosine += drawn[i * along.length + j] * along[j];
    if (cosine >= gamma || chance[i] < elsewhere) first = i;
  }
  return first;
}

/**
 * One message in multiples of 2^-28. The number of candidates tried has the same law for every value, because
 * candidates have no preferred direction: more may be drawn where the first ones do not suffice.
 */
export function unitMessage(value, { length, bound, cap }, { sign, batches, take }) {
  const along = direction(value, bound, sign);
  let found = null;
  for (const batch of batches) {
    const first = firstTaken(batch, along, cap);
    if (first >= 0 && found === null) found = batch.rounded.slice(first * length, (first + 1) * length);
  }
  while (found === null) {
    const batch = candidates(length, take);
    const first = firstTaken(batch, along, cap);
    if (first >= 0) found = batch.rounded.slice(first * length, (first + 1) * length);
  }
  return found;
}
