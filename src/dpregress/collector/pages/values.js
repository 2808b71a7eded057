// From answers to the value that noise is added to: bounded, whitened, and never longer than the bound.

/** Design columns and the response of answers in the order of the questions; null for what was not answered. */
export function designRow(terms, answers) {
  const given = new Map(terms.questions.map((question, i) => [question.name, { question, answer: answers[i] }]));
  const cell = ({ question, level }) => {
    const { question: asked, answer } = given.get(question);
    if (asked.kind === "number") return bounded(asked, answer);
    return asked.levels.includes(answer) ? Number(answer === level) : null;
  };
  const response = terms.questions.at(-1);
  const level = response.kind === "choice" ? response.levels[1] : null;
  return { x: terms.columns.map(cell), y: cell({ question: response.name, level }) };
}

function bounded({ lower, upper }, answer) {
  if (answer === null || String(answer).trim() === "" || !Number.isFinite(Number(answer))) return null;
  return Math.min(Math.max(Number(answer), lower), upper);
}

/** The value of a row, as a plain array. */
export function valueOf(study, { x, y }) {
  const { whitening, fill, intercept, radius, weighting, response } = study.frame;
  const row = x.map((each, i) => each ?? fill[i]);
  if (intercept) row.unshift(1);
  const image = whitening.map((weights) => weights.reduce((sum, weight, i) => sum + weight * row[i], 0));
  const inner = radius * (1 - 8 * (whitening.length + 4) * 2 ** -52);
  const length = Math.hypot(...image);
  const shrunk = length > inner ? inner / length : 1;
  const v = image.map((each) => each * shrunk);
  const weight = weighting === "row" ? shrunk : 1;
  const scaled = (weight * ((y ?? response.centre) - response.centre)) / response.scale;
  const u = Math.min(Math.max(scaled, -response.bound), response.bound);
  const value = {
    "cross-moment": () => times(v, u),
    "second-moment": () => upperTriangle([...v, response.cross * u]),
    "moments-in-parts": () => inParts(study.parts, v, u, weight, response.bound),
  }[study.question]();
  return y === null ? value.map(() => 0) : value;
}

const times = (v, factor) => v.map((each) => factor * each);

/** The row times its response, times a constant and times hats of the response, and the products of the row. */
function inParts({ first, hat, nodes, gram }, v, u, weight, bound) {
  const along = ((Math.min(Math.max(u / weight / bound, -1), 1) + 1) * (nodes - 1)) / 2;
  const hats = Array.from({ length: nodes }, (_, j) => Math.max(1 - Math.abs(along - j), 0));
  const factors = [u, ...(first > 0 ? [first * weight] : []), ...hats.map((each) => hat * each * weight)];
  return [...factors.flatMap((factor) => times(v, factor)), ...(gram > 0 ? times(upperTriangle(v), gram) : [])];
}

function upperTriangle(z) {
  return z.flatMap((first, i) => z.slice(i).map((second, j) => first * second * (j === 0 ? 1 : Math.SQRT2)));
}
