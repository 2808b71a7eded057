// A report is kept before it is sent, and the same bytes are sent ever after. The shares of a study of two collectors are
// kept from the moment the participant sends them, and no longer than until they arrive. IndexedDB, because two tabs may see
// different contents of localStorage for a moment, and then each would make a report.

import { hexOf } from "./study_file.js";

const STORE = "reports";
const keyOf = (hash, token) => `${hash}/${token === null ? "open" : hexOf(token)}`;

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function opened() {
  const request = indexedDB.open("dpregress", 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return settled(request);
}

/** Ask the store one thing, and wait until it is on disk. */
async function withStore(mode, asked) {
  const database = await opened();
  try {
    const transaction = database.transaction(STORE, mode, { durability: "strict" });
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const [found] = await Promise.all([settled(asked(transaction.objectStore(STORE))), done]);
    return found;
  } finally {
    database.close();
  }
}

/** The report that this browser keeps for a study, as `{bytes, state}`, or `{shares, arrived, ended}`, or null. */
export async function keptReport(hash, token) {
  return (await withStore("readonly", (store) => store.get(keyOf(hash, token)))) ?? null;
}

/** Whether this browser keeps anything. */
export async function canKeep() {
  try {
    await withStore("readwrite", (store) => store.count());
    return "locks" in navigator;
  } catch {
    return false;
  }
}

/** The kept report, or the one that is made now; two tabs never make two. */
export function keepOnce(hash, token, make) {
  const key = keyOf(hash, token);
  return navigator.locks.request(`dpregress/${key}`, async () => {
    const before = await keptReport(hash, token);
    if (before !== null) return before;
    const made = await make();
    await withStore("readwrite", (store) => store.add(made, key));
    return keptReport(hash, token);
  });
}

/** Note that the collector has acknowledged the kept report. */
export const noteReceived = (hash, token, bytes) =>
  withStore("readwrite", (store) => store.put({ bytes, state: "received" }, keyOf(hash, token)));

/** Put something else in the place of what is kept, which another tab may change meanwhile. Returns what is kept then. */
function change(hash, token, changed) {
  const key = keyOf(hash, token);
  return navigator.locks.request(`dpregress/${key}`, async () => {
    const left = changed(await keptReport(hash, token));
    await withStore("readwrite", (store) => store.put(left, key));
    return left;
  });
}

/**
 * Note that one of two collectors has acknowledged its share, and erase the share: whoever serves this page later could
 * put both together. Returns what is kept then.
 */
export const noteArrived = (hash, token, place) =>
  change(hash, token, ({ shares, arrived, ...rest }) => ({
    ...rest,
    shares: shares.map((each, i) => (i === place ? null : each)),
    arrived: arrived.map((each, i) => each || i === place),
  }));

/**
 * Erase both shares, "refused" by a collector or "erased" by the participant. What stays is the mark that this browser has
 * answered, so that it does not answer again. Returns what is kept then.
 */
export const noteEnded = (hash, token, how) =>
  change(hash, token, (before) => ({
    shares: [null, null],
    arrived: before?.arrived ?? [false, false],
    ended: before?.ended ?? how,
  }));
