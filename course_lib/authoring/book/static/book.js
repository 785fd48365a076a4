// The book: below a question, outputs and the text that describes them come into sight with an answer.
(function () {
  "use strict";
  const END = ".course-cell + details, details:not(.course-quiz), section";

  function below(cell) {    // the outputs between a question and its folded reason or the next heading
    const found = [];
    let described = false;
    for (let next = cell.nextElementSibling; next && !next.matches(END); next = next.nextElementSibling) {
      if (next.querySelector(".course-quiz")) break;
      if (next.matches(".course-cell")) {
        described = described === "output" ? "text" : false;
      } else if (next.matches(".cell")) {
        const output = next.querySelector(".cell_output");
        if (output) found.push(output);
        described = output ? "output" : false;
      } else if (described === "text") {
        found.push(next);
      }
    }
    return found;
  }

  function question(cell) {
    const choices = [...cell.querySelectorAll(".course-quiz")];
    const answers = below(cell);
    if (!choices.length || !answers.length) return;
    const note = document.createElement("p");
    note.className = "course-wait";
    note.textContent = window.courseWords.answer_first;
    answers[0].before(note);
    const show = () => {
      const open = choices.some((choice) => choice.open);
      note.hidden = open;
      for (const one of answers) {
        if (open) one.removeAttribute("hidden"); else one.setAttribute("hidden", "until-found");
      }
    };
    choices.forEach((choice) => choice.addEventListener("toggle", show));
    answers.forEach((one) => one.addEventListener("beforematch", () => { choices[0].open = true; }));
    show();
  }

  if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
    window.DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;    // a browser does not fetch files
  }
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".cell").forEach(question);
  });
})();
