// The report is kept before it is sent, and the same bytes are sent ever after.

import { hexOf } from "./study_file.js";

const keyOf = (hash, token) => `dpregress/report/${hash}/${token === null ? "open" : hexOf(token)}`;

const packed = (bytes) => btoa(String.fromCharCode(...bytes));
const unpacked = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

/** The report that this browser keeps for a study, or null. */
export function keptReport(hash, token) {
  const found = localStorage.getItem(keyOf(hash, token));
  if (found === null) return null;
  const { report, state } = JSON.parse(found);
  return { bytes: unpacked(report), state };
}

function keep(hash, token, bytes, state) {
  localStorage.setItem(keyOf(hash, token), JSON.stringify({ report: packed(bytes), state }));
}

/** Whether this browser keeps anything. */
export function canKeep() {
  try {
    localStorage.setItem("dpregress/probe", "1");
    localStorage.removeItem("dpregress/probe");
    return "locks" in navigator;
  } catch {
    return false;
  }
}

/** The kept report, or the one that is made now; two tabs never make two. */
export function keepOnce(hash, token, make) {
  return navigator.locks.request(keyOf(hash, token), async () => {
    const before = keptReport(hash, token);
    if (before !== null) return before;
    keep(hash, token, await make(), "made");
    return keptReport(hash, token);
  });
}

/** Note that the collector has acknowledged the kept report. */
export const noteReceived = (hash, token, bytes) => keep(hash, token, bytes, "received");
