// The study: its bytes must have the hash of the invitation, and its noise must keep what its terms promise.

import { probability } from "./normal.js";

const SLACK = 1e-6;
const RESERVE = 1e-4; // of epsilon, for the rounding of unit vectors
const DIGITS = /^[0-9a-f]{64}$/;

/** Why a study is refused; `reason` is a key of the words. */
export class Refusal extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

export const hexOf = (bytes) => Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));

/** The hash of the study and the token in the fragment of an invitation. */
export function invitationIn(fragment) {
  const told = new URLSearchParams(fragment.replace(/^#/, ""));
  const [study, token] = [told.get("study"), told.get("token")];
  if (study === null || !DIGITS.test(study)) throw new Refusal("noHash");
  if (token !== null && !DIGITS.test(token)) throw new Refusal("badToken");
  return { study, token: token === null ? null : bytesOf(token) };
}

/** The study that the collector serves, if it is the one of the invitation. */
export async function fetchStudy({ study, token }) {
  const response = await fetch("/api/study", { credentials: "omit" });
  if (!response.ok) throw new Refusal("noStudy");
  const bytes = await response.arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  if (hexOf(digest) !== study) throw new Refusal("otherStudy");
  const record = JSON.parse(new TextDecoder().decode(bytes));
  if (record.format !== "dpregress.study/2") throw new Refusal("otherFormat");
  if (record.terms.enrolment === "token" && token === null) throw new Refusal("noToken");
  if (!keepsPromise(record)) throw new Refusal("weakNoise");
  return { record, digest, hash: study };
}

/** Whether the noise keeps the epsilon and delta that participants are told. */
export function keepsPromise({ question, frame, spend, answer, terms }) {
  const { bound: y, cross } = frame.response;
  const joint = question === "second-moment";
  const bound = joint ? frame.radius ** 2 + (cross * y) ** 2 : frame.radius * y;
  const order = frame.whitening.length + 1;
  const length = joint ? (order * (order + 1)) / 2 : order - 1;
  const { epsilon, delta } = terms.budget;
  if (!(answer.bound >= bound * (1 - SLACK)) || answer.length !== length) return false;
  if (spend.kind === "pure") {
    const room = spend.epsilon <= epsilon * (1 + SLACK) && answer.cap.epsilon <= spend.epsilon - RESERVE + 1e-12;
    return room && answer.bits === 28 && answer.cap.gamma >= 0 && answer.cap.gamma < 1;
  }
  const apart = (joint ? Math.SQRT2 : 2) * bound * 2 ** answer.bits;
  const least = Math.min(apart + Math.sqrt(length), 2 * bound * 2 ** answer.bits) / spend.mu;
  return Number.isInteger(answer.noise_scale) && answer.noise_scale >= least * (1 - SLACK)
    && gaussianDelta(epsilon, spend.mu) <= delta * (1 + SLACK);
}

/** The smallest delta at which mu-GDP implies (epsilon, delta)-DP. */
export function gaussianDelta(epsilon, mu) {
  return probability(mu / 2 - epsilon / mu) - Math.exp(epsilon) * probability(-mu / 2 - epsilon / mu);
}

/** How often whoever must tell two sets of answers apart by a report is right, at most. */
export function guessingRate({ spend }) {
  return spend.kind === "pure" ? 1 / (1 + Math.exp(-spend.epsilon)) : probability(spend.mu / 2);
}
