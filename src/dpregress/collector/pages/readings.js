// Earlier readings of a study's results, kept in this browser. They are results, not reports: nothing private.

const MOST = 200;

const keyOf = (study) => `dpregress/readings/${study}`;

export function readings(study) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(study))) ?? [];
  } catch {
    return [];
  }
}

/** Add a reading, one for each number of reports. Where there are many, every second old one goes. */
export function addReading(study, { n, coefficients }) {
  let kept = readings(study).filter((each) => each.n < n);
  if (kept.length >= MOST) kept = kept.filter((_, i) => i % 2 === 0);
  kept.push({ n, coefficients: coefficients.map(({ name, estimate, lower, upper }) => ({ name, estimate, lower, upper })) });
  try {
    localStorage.setItem(keyOf(study), JSON.stringify(kept));
  } catch {
    return kept; // a browser that keeps nothing shows this visit's last reading
  }
  return kept;
}

export const forgetReadings = (study) => localStorage.removeItem(keyOf(study));
