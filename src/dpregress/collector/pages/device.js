// The device: asks the worker for messages, and puts them into reports.

const MAGIC = new TextEncoder().encode("DPR1");
const HEADER = 84;

/** A worker that draws noise for one study. */
export class NoiseWorker {
  #worker = new Worker("/static/noise_worker.js", { type: "module" });
  #waiting = new Map();
  #asked = 0;

  constructor() {
    this.#worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.error === undefined) resolve(data.result);
      else reject(new Error(data.error));
    };
    this.#worker.onerror = () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the worker failed"));
      this.#waiting.clear();
    };
  }

  ask(task, more) {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, task, ...more });
    });
  }
}

/** A report in the wire format. */
export function encodeReport(digest, token, message) {
  const bytes = new Uint8Array(HEADER + 4 * message.length);
  bytes.set(MAGIC, 0);
  bytes.set(digest, 4);
  crypto.getRandomValues(bytes.subarray(36, 52));
  if (token !== null) bytes.set(token, 52);
  const view = new DataView(bytes.buffer);
  message.forEach((each, i) => view.setInt32(HEADER + 4 * i, each, true));
  return bytes;
}

/** The numbers of a report. */
export function messageIn(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset + HEADER);
  return Array.from({ length: (bytes.length - HEADER) / 4 }, (_, i) => view.getInt32(4 * i, true));
}
