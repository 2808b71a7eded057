// Sends the kept bytes, and sends them again where the wire format says so.

const AGAIN = new Set([408, 429, 500, 502, 503, 504]);
const TRIES = 5;
const LONGEST_WAIT = 60;

/** Wait, but no longer than until the signal, if there is one. */
const rest = (seconds, signal) =>
  new Promise((resolve) => {
    setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", resolve);
  });

/** Whether the same bytes can never be accepted: an error of the report, other than that the study is not open yet. */
export const isFinal = ({ status, reason }) => status >= 400 && status < 500 && !AGAIN.has(status) && reason !== "early";

async function once(bytes, collector) {
  try {
    const response = await fetch(`${collector}/api/reports`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: bytes,
      credentials: "omit",
      redirect: "error", // nobody is sent elsewhere
      referrerPolicy: "no-referrer",
    });
    const wait = Number(response.headers.get("retry-after")) || 0;
    const told = await response.json().catch(() => ({}));
    return { status: response.status, reason: told.reason ?? null, wait };
  } catch {
    return { status: 0, reason: "offline", wait: 0 };
  }
}

/**
 * Send a report to a collector, by default to that of the page; `onWait` hears the seconds before each further try.
 * After the optional signal nothing is sent again. Returns the last status and reason.
 */
export async function sendReport(bytes, onWait, collector = "", signal = null) {
  for (let tried = 1; ; tried++) {
    const found = await once(bytes, collector);
    const again = found.status === 0 || AGAIN.has(found.status);
    if (!again || tried === TRIES || signal?.aborted) return found;
    const wait = Math.min(Math.max(found.wait, 2 ** tried), LONGEST_WAIT);
    onWait(wait);
    await rest(wait, signal);
    if (signal?.aborted) return found;
  }
}
