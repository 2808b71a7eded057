// The standard normal law: quantiles by Wichura's algorithm AS 241 (1988), to a relative error of about 1e-16.

const CENTRE = [
  [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
    13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
  [5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
    5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1],
];
const MIDDLE = [
  [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
    3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
  [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1],
];
const TAIL = [
  [2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
    0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772],
  [2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
    0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1],
];

function ratio([above, under], r) {
  let top = 0;
  let bottom = 0;
  for (let i = 0; i < 8; i++) {
    top = top * r + above[i];
    bottom = bottom * r + under[i];
  }
  return top / bottom;
}

/** The number below which a standard normal lies with probability u, for 0 < u < 1. */
export function quantile(u) {
  const q = u - 0.5;
  if (Math.abs(q) <= 0.425) return q * ratio(CENTRE, 0.180625 - q * q);
  const r = Math.sqrt(-Math.log(q < 0 ? u : 1 - u));
  const size = r <= 5 ? ratio(MIDDLE, r - 1.6) : ratio(TAIL, r - 5);
  return q < 0 ? -size : size;
}

/** The probability that a standard normal lies below x, by bisection of the quantile. */
export function probability(x) {
  if (x > 0) return 1 - probability(-x);
  let low = -745;
  let high = Math.log(0.5);
  for (let i = 0; i < 100; i++) {
    const middle = (low + high) / 2;
    if (quantile(Math.exp(middle)) < x) low = middle;
    else high = middle;
  }
  return Math.exp((low + high) / 2);
}
