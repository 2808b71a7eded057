// The words of the study page. Questions and consent come from the study; `{name}` is replaced.

import { english } from "./words_en.js";
import { german } from "./words_de.js";

const KNOWN = { en: english, de: german };

/** The languages of a study; participants get their browser's if the study has it. */
export function preferred(languages) {
  for (const wished of navigator.languages ?? []) {
    const found = languages.find((each) => each.split("-")[0] === wished.split("-")[0]);
    if (found !== undefined) return found;
  }
  return languages[0];
}

/**
 * Words in a language. A language without words of its own has English ones around the study's texts. In a study of two
 * collectors, which is `shared`, words of the same name with `Shares` behind it are said where there are some.
 */
export function wordsIn(language, shared = false) {
  const base = language.split("-")[0];
  const spoken = base in KNOWN ? base : "en";
  const words = KNOWN[spoken];
  const local = (navigator.languages ?? []).find((each) => each.split("-")[0] === spoken) ?? spoken;
  const keyOf = (key) => (shared && `${key}Shares` in words ? `${key}Shares` : key);
  return {
    language: spoken,
    say: (key, values = {}) => words[keyOf(key)].replace(/\{(\w+)\}/g, (_, name) => values[name]),
    has: (key) => key in words,
    number: (value, digits = 3) => new Intl.NumberFormat(local, { maximumSignificantDigits: digits }).format(value),
    time: (text) => new Intl.DateTimeFormat(local, { dateStyle: "long", timeStyle: "short" }).format(new Date(text)),
    name: (tag) => new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag,
  };
}
