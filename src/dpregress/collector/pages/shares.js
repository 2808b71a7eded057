// An exact answer as two shares modulo 2^64, one for each collector of a study.

import { valueOfAnswers } from "./message.js";

export const SEED = 16;
const BITS = 64;
const MAGIC = new TextEncoder().encode("DPS1");
const TOKEN_LABEL = new TextEncoder().encode("dpregress/collector-token/1/");
const HEADER = 84;

/** A value in whole steps of the grid, truncated towards zero, as BigInts. */
export const stepsOf = (value, { answer }) => value.map((each) => BigInt(Math.trunc(each * 2 ** answer.bits)));

/** The words of a seed: AES-128 of the blocks 0, 1, 2, .., read as little-endian integers of 64 bits. */
export async function seedWords(seed, length) {
  const key = await crypto.subtle.importKey("raw", seed, "AES-CTR", false, ["encrypt"]);
  const blank = new Uint8Array(16 * Math.ceil(length / 2));
  const stream = await crypto.subtle.encrypt({ name: "AES-CTR", counter: new Uint8Array(16), length: BITS }, key, blank);
  const view = new DataView(stream);
  return Array.from({ length }, (_, i) => view.getBigUint64(8 * i, true));
}

/** The share beside a seed: the steps minus the words of the seed. */
export async function additiveShare(steps, seed) {
  const words = await seedWords(seed, steps.length);
  const bytes = new Uint8Array(8 * steps.length);
  const view = new DataView(bytes.buffer);
  steps.forEach((step, i) => view.setBigUint64(8 * i, BigInt.asUintN(BITS, step - words[i]), true));
  return bytes;
}

/** Both shares of answers in the order of the questions. The seed was drawn before the answers were read. */
export const sharesOf = async (study, answers, seed) =>
  [seed, await additiveShare(stepsOf(valueOfAnswers(study, answers), study), seed)];

/** What one collector gets in place of the token of an invitation; zeros where there is none. */
export async function tokenFor(token, place) {
  if (token === null) return new Uint8Array(32);
  const told = Uint8Array.from([...TOKEN_LABEL, place, ...token]);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", told));
}

/** Two share reports in the wire format, under one random name. */
export async function encodeShares(digest, token, shares) {
  const name = crypto.getRandomValues(new Uint8Array(16));
  const tokens = await Promise.all(shares.map((_, place) => tokenFor(token, place)));
  return shares.map((share, place) => Uint8Array.from([...MAGIC, ...digest, ...name, ...tokens[place], ...share]));
}

/** The numbers of a share report as text: the seed in hexadecimal, or words. */
export function numbersIn(bytes, place) {
  const share = bytes.subarray(HEADER);
  if (place === 0) return [Array.from(share, (each) => each.toString(16).padStart(2, "0")).join("")];
  const view = new DataView(share.buffer, share.byteOffset);
  return Array.from({ length: share.length / 8 }, (_, i) => String(view.getBigUint64(8 * i, true)));
}
