// The questions of a study as a form. Answers are read once, when the participant asks for a report.

import { element } from "./dom.js";

function numberField(question, name, words) {
  const { lower, upper, unit } = question;
  const range = words.say(unit ? "rangeUnit" : "range", {
    lower: words.number(lower, 12), upper: words.number(upper, 12), unit,
  });
  const input = element("input", {
    type: "number", id: name, name, step: "any", inputmode: lower < 0 ? "text" : "decimal", autocomplete: "off",
    "aria-describedby": `${name}-range ${name}-error`,
  });
  return [
    element("span", { class: "field" }, input, unit ? element("span", { class: "unit" }, unit) : ""),
    element("p", { class: "fine", id: `${name}-range`, lang: words.language }, range),
    element("p", { class: "error", id: `${name}-error`, lang: words.language }),
  ];
}

function choiceField(question, name, language, words) {
  const option = (value, label, checked, spoken) => {
    const input = element("input", { type: "radio", name, value, checked, autocomplete: "off" });
    return element("label", { class: "option", lang: spoken }, input, element("span", {}, label));
  };
  return [
    ...question.labels[language].map((label, i) => option(String(i), label, false, language)),
    option("", words.say("noAnswer"), true, words.language),
  ];
}

/** Show the questions in a language. What was typed before is kept. */
export function showQuestions(where, questions, language, words) {
  const before = [...where.querySelectorAll("input")].map(({ value, checked }) => ({ value, checked }));
  where.replaceChildren(
    ...questions.map((question, i) => {
      const name = `question-${i}`;
      if (question.kind === "choice") {
        const legend = element("legend", { lang: language }, question.text[language]);
        return element("fieldset", {}, legend, ...choiceField(question, name, language, words));
      }
      const label = element("label", { for: name, class: "legend", lang: language }, question.text[language]);
      return element("div", { class: "question" }, label, ...numberField(question, name, words));
    }),
  );
  where.querySelectorAll("input").forEach((input, i) => {
    if (i in before) [input.value, input.checked] = [before[i].value, before[i].checked];
  });
}

/** The first field that holds no number, marked as such; null if all can be read. */
export function firstUnreadable(where, words) {
  let first = null;
  for (const input of where.querySelectorAll("input[type=number]")) {
    const wrong = input.validity.badInput;
    input.setAttribute("aria-invalid", String(wrong));
    document.getElementById(`${input.id}-error`).textContent = wrong ? words.say("notNumber") : "";
    if (wrong) first ??= input;
  }
  return first;
}

/** The answers in the order of the questions; null where there is none. */
export function readAnswers(form, questions) {
  const given = new FormData(form);
  return questions.map((question, i) => {
    const found = given.get(`question-${i}`);
    if (found === null || found === "") return null;
    return question.kind === "choice" ? question.levels[Number(found)] : Number(found);
  });
}
