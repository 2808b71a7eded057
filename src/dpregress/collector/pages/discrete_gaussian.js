// The discrete Gaussian on the integers, drawn exactly: Canonne, Kamath, Steinke (2020), Algorithms 1 to 3.
// Integers have any length, and bytes are consumed in the order that docs/collector/wire.md fixes.

function bitLength(n) {
  if (n === 0n) return 0;
  const digits = n.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}

function fromLittleEndian(bytes) {
  let digits = "0x";
  for (let i = bytes.length - 1; i >= 0; i--) digits += bytes[i].toString(16).padStart(2, "0");
  return BigInt(digits);
}

/** A uniform integer in 0..m-1. */
export function below(m, take) {
  const bits = bitLength(m - 1n);
  if (bits === 0) return 0n;
  const count = Math.ceil(bits / 8);
  for (;;) {
    const found = BigInt.asUintN(bits, fromLittleEndian(take(count)));
    if (found < m) return found;
  }
}

const bernoulli = (n, d, take) => below(d, take) < n;

/** True with probability exp(-n/d), for 0 <= n <= d. */
function bernoulliExp1(n, d, take) {
  let k = 1n;
  while (bernoulli(n, d * k, take)) k += 1n;
  return k % 2n === 1n;
}

/** True with probability exp(-n/d), for n >= 0. */
function bernoulliExp(n, d, take) {
  let left = n;
  while (left > d) {
    if (!bernoulliExp1(1n, 1n, take)) return false;
    left -= d;
  }
  return bernoulliExp1(left, d, take);
}

/** One draw of the discrete Laplace law of scale t. */
function laplace(t, take) {
  for (;;) {
    const u = below(t, take);
    if (!bernoulliExp(u, t, take)) continue;
    let v = 0n;
    while (bernoulliExp1(1n, 1n, take)) v += 1n;
    const x = u + t * v;
    const negative = below(2n, take) === 1n;
    if (!(negative && x === 0n)) return negative ? -x : x;
  }
}

/** One draw of the discrete Gaussian of scale s, as a BigInt. */
export function gaussian(scale, take) {
  const s = BigInt(scale);
  const t = s + 1n;
  const divisor = 2n * s * s * t * t;
  for (;;) {
    const y = laplace(t, take);
    const far = (y < 0n ? -y : y) * t - s * s;
    if (bernoulliExp(far * far, divisor, take)) return y;
  }
}
