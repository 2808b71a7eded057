// The study: its bytes must have the hash of the invitation, and its noise must keep what its terms promise.

import { probability } from "./normal.js";
import { UNIT_BITS } from "./unit_vector.js";

const SLACK = 1e-6;
const RESERVE = 1e-4; // of epsilon, for the rounding of unit vectors
const HUGE = 1e100; // no number of a study is larger
const LARGEST_STEPS = 2 ** 31;
const MOST_NODES = 65;
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
  const response = await fetch("/api/study", { credentials: "omit" }).catch(() => null); // the page's policy may refuse
  if (!response?.ok) throw new Refusal("noStudy");
  const bytes = await response.arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  if (hexOf(digest) !== study) throw new Refusal("otherStudy");
  const record = JSON.parse(new TextDecoder().decode(bytes));
  if (!["dpregress.study/2", "dpregress.study/3"].includes(record.format)) throw new Refusal("otherFormat");
  const shared = record.format === "dpregress.study/3";
  if (shared !== "collectors" in record) throw new Refusal("otherFormat");
  if (shared) checkCollectors(record, location.origin);
  if (record.terms.enrolment === "token" && token === null) throw new Refusal("noToken");
  if (!keepsPromise(record)) throw new Refusal("weakNoise");
  return { record, digest, hash: study };
}

const LOOPBACK = /^(([a-z0-9-]+\.)*localhost|127(\.\d+){3})$/;
const PLAIN = /^https?:\/\/[a-z0-9.:[\]-]+$/i;

/**
 * The origin of a collector's address, and the server that it leads to however it is spelt; null for no address. IPv6
 * addresses are refused: browsers ignore them in a content security policy.
 */
export function collectorAt(address) {
  if (typeof address !== "string" || !PLAIN.test(address) || !URL.canParse(address)) return null;
  const { protocol, hostname, port, origin } = new URL(address);
  if (hostname.startsWith("[")) throw new Refusal("ipv6Address");
  const host = hostname.replace(/\.$/, "");
  const near = LOOPBACK.test(host);
  if (protocol !== "https:" && !near) return null;
  return { origin, server: `${near ? "localhost" : host}:${port || (protocol === "https:" ? 443 : 80)}` };
}

/** Refuse a study whose collectors are not two different servers, and a page that neither of them serves. */
export function checkCollectors({ collectors, answer }, origin) {
  const found = Array.isArray(collectors) && collectors.length === 2 ? collectors.map(({ address }) => collectorAt(address)) : [];
  const apart = (name) => new Set(collectors.map((each) => each[name])).size === 2;
  if (found.length !== 2 || found.includes(null) || found[0].server === found[1].server || !apart("name") || !apart("key")
    || answer.cap !== null) throw new Refusal("badCollectors");
  if (!found.some((each) => each.origin === origin)) throw new Refusal("otherAddress");
}

const within = (value) => Number.isFinite(value) && Math.abs(value) <= HUGE;
const positive = (value) => within(value) && value >= 1 / HUGE;

/** Whether no arithmetic with the numbers of a study can overflow, whatever is answered. */
function isTame({ question, parts, frame, terms }) {
  const { radius, response, whitening, fill } = frame;
  const ends = terms.questions.flatMap(({ kind, lower, upper }) => (kind === "number" ? [lower, upper] : []));
  return ["cross-moment", "second-moment", "moments-in-parts"].includes(question)
    && (question === "moments-in-parts" ? areParts(parts) : parts === undefined)
    && [radius, response.scale, response.bound, response.cross].every(positive)
    && [response.centre, ...whitening.flat(), ...fill, ...ends].every(within);
}

const share = (value) => Number.isFinite(value) && value >= 0 && value <= 1;

function areParts(parts) {
  return typeof parts === "object" && parts !== null && [parts.first, parts.hat, parts.gram].every(share)
    && Number.isInteger(parts.nodes) && parts.nodes >= 0 && parts.nodes <= MOST_NODES && (parts.nodes > 0) === (parts.hat > 0)
    && parts.nodes !== 1;
}

/** The largest norm of a value, and how many numbers it has. */
function sizeOf({ question, parts, frame }) {
  const { radius, whitening, response } = frame;
  const order = whitening.length;
  const pairs = (n) => (n * (n + 1)) / 2;
  if (question === "second-moment") return [radius ** 2 + (response.cross * response.bound) ** 2, pairs(order + 1)];
  if (question === "cross-moment") return [radius * response.bound, order];
  const { first, hat, nodes, gram } = parts;
  const length = order * (1 + (first > 0) + nodes) + (gram > 0 ? pairs(order) : 0);
  return [radius * Math.hypot(response.bound, first, hat, gram * radius), length];
}

/** Whether the noise keeps the epsilon and delta that participants are told. */
export function keepsPromise(study) {
  const { question, spend, answer, terms } = study;
  if (!isTame(study)) return false;
  const [bound, length] = sizeOf(study);
  const { epsilon, delta } = terms.budget;
  if (!(answer.bound >= bound * (1 - SLACK)) || answer.length !== length) return false;
  if (spend.kind === "pure") return keepsPure(spend, answer, epsilon);
  const most = bound * 2 ** answer.bits;
  const apart = Math.min((question === "second-moment" ? Math.SQRT2 : 2) * most + Math.sqrt(length), 2 * most);
  return spend.kind === "gdp" && positive(spend.mu) && answer.cap === null
    && Number.isInteger(answer.bits) && Number.isInteger(answer.noise_scale)
    && Math.max(most, answer.noise_scale) <= LARGEST_STEPS
    && answer.noise_scale >= Math.max((apart / spend.mu) * (1 - SLACK), 1)
    && gaussianDelta(epsilon, spend.mu) <= delta * (1 + SLACK);
}

function keepsPure(spend, { bits, cap, noise_scale: scale }, epsilon) {
  return cap !== null && scale === null && bits === UNIT_BITS
    && spend.epsilon <= epsilon * (1 + SLACK) && positive(cap.epsilon) && cap.epsilon <= spend.epsilon - RESERVE + 1e-12
    && cap.gamma >= 0 && cap.gamma < 1;
}

/** The smallest delta at which mu-GDP implies (epsilon, delta)-DP. */
export function gaussianDelta(epsilon, mu) {
  return probability(mu / 2 - epsilon / mu) - Math.exp(epsilon) * probability(-mu / 2 - epsilon / mu);
}

/** How often whoever must tell two sets of answers apart by a report is right, at most. */
export function guessingRate({ spend }) {
  return spend.kind === "pure" ? 1 / (1 + Math.exp(-spend.epsilon)) : probability(spend.mu / 2);
}
