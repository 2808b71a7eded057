// Random bytes and uniform numbers. The bytes come from crypto.getRandomValues and from nowhere else; tests give others.

const POOL = 65536; // bytes that one call of getRandomValues may fill

/** A function that returns so many fresh bytes from the browser's cryptographic source. */
export function secureBytes() {
  const pool = new Uint8Array(POOL);
  let at = POOL;
  return (count) => {
    const taken = new Uint8Array(count);
    for (let filled = 0; filled < count; ) {
      if (at === POOL) {
        crypto.getRandomValues(pool);
        at = 0;
      }
      const part = Math.min(count - filled, POOL - at);
      taken.set(pool.subarray(at, at + part), filled);
      pool.fill(0, at, at + part);
      at += part;
      filled += part;
    }
    return taken;
  };
}

/** Uniform numbers strictly between 0 and 1, `(k + 0.5) 2^-52` with k the upper 52 bits of 8 bytes. */
export function uniforms(count, take) {
  const bytes = take(8 * count);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const found = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const low = view.getUint32(8 * i, true) >>> 12;
    const high = view.getUint32(8 * i + 4, true);
    found[i] = (high * 2 ** 20 + low + 0.5) * 2 ** -52;
  }
  return found;
}
