// Small helpers for building pages without markup in text.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** An HTML element. Texts are text, never markup. */
export const element = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

/** An SVG element. */
export const shape = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

/** Text in a language of its own. */
export function speak(node, text, language) {
  node.textContent = text;
  node.lang = language;
}
