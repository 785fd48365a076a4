// The book: answers that come into sight, sliders that move, and excerpts of a search that can be read.
(function () {
  "use strict";
  const END = ".course-cell + details, details:not(.course-quiz), section";

  // Below a question, outputs and the text that describes them come into sight with an answer.
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

  // The controls of a widget choose among pictures drawn ahead, which are fetched when a control is touched.
  function moving(form) {
    const controls = [...form.querySelectorAll("input, select")];
    const frames = JSON.parse(form.dataset.frames);
    const [width, height] = [Number(form.dataset.width), Number(form.dataset.height)];
    const still = form.closest(".cell_output").querySelector("img");
    const canvas = document.createElement("canvas");
    let pictures = null;

    const field = (control) => control.matches("select") ? "selectedIndex" : "value";
    const places = () => controls.map((control) => Number(control[field(control)]));
    const number = () => frames.findIndex((one) => String(one) === String(places()));

    function fetched() {
      if (!pictures) {
        const image = new Image();
        image.src = form.dataset.pictures;
        pictures = image.decode().then(() => image);
      }
      return pictures;
    }

    function tell(control) {
      if (control.matches("select")) return;
      const text = JSON.parse(control.dataset.texts)[control.value];
      control.setAttribute("aria-valuetext", text);
      control.nextElementSibling.textContent = text;
    }

    async function move(moved) {
      if (number() < 0) {    // there is no such combination: the others go back to where they began
        for (const one of controls) if (one !== moved) one[field(one)] = one.dataset.start;
      }
      controls.forEach(tell);
      const image = await fetched();
      canvas.getContext("2d").drawImage(image, 0, number() * height, width, height, 0, 0, width, height);
      const values = controls.map((one) => {
        const label = form.querySelector(`label[for="${one.id}"]`).textContent;
        return `${label} ${one.getAttribute("aria-valuetext") || one.value}`;
      });
      canvas.setAttribute("aria-label", [still.alt, values.join(", ")].filter(Boolean).join(" "));
      if (still.isConnected) still.replaceWith(canvas);
    }

    Object.assign(canvas, { width, height });
    canvas.setAttribute("role", "img");
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const type of ["focusin", "pointerdown"]) form.addEventListener(type, fetched);
    controls.forEach((control) => control.addEventListener("input", () => move(control)));
  }

  // A formula as text, for the excerpts of a search: \frac{\partial L}{\partial h_t} is ∂L/∂h_t.
  const SIGNS = { alpha: "α", beta: "β", gamma: "γ", epsilon: "ε", theta: "θ", lambda: "λ", mu: "μ", pi: "π",
    sigma: "σ", tau: "τ", varphi: "φ", cdot: "·", times: "×", odot: "⊙", sqrt: "√", sum: "∑", prod: "∏",
    partial: "∂", nabla: "∇", infty: "∞", top: "⊤", in: "∈", cap: "∩", le: "≤", leq: "≤", ge: "≥", geq: "≥",
    ne: "≠", approx: "≈", to: "→", rightarrow: "→", leftarrow: "←", mid: "|", lVert: "‖", rVert: "‖",
    lceil: "⌈", rceil: "⌉", langle: "⟨", rangle: "⟩", ldots: "…", dots: "…", cdots: "…", qquad: " ", quad: " " };
  const SPELT = /^(?:tanh|cos|sin|log|ln|exp|min|max|arg|softmax)$/;
  const group = (inner, plain = /^[\w.∂]*$/) => plain.test(inner) || /^\([^()]*\)$/.test(inner) ? inner : `(${inner})`;

  function readable(tex) {
    let text = tex.replace(/\\[()[\]]/g, "").replace(/\\(?:begin|end)\{\w+\*?\}/g, " ")
      .replace(/\\partial /g, "∂").replace(/\\t?frac(\w)(\w)/g, "$1/$2");
    for (let before = ""; before !== text;) {    // from the innermost braces outwards
      before = text;
      text = text
        .replace(/\\t?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}/g, (_all, over, under) => `${group(over)}/${group(under)}`)
        .replace(/([_^]|\\sqrt)\s*\{([^{}]*)\}/g, (_all, sign, inner) => sign === "\\sqrt"
          ? `√${group(inner)}` : `${sign}${group(inner, /^[a-zA-Z0-9.]*$/)}`)
        .replace(/(\\(?!t?frac\b)[a-zA-Z]+)\s*\{([^{}]*)\}/g, "$1 $2");
    }
    return text.replace(/\\([a-zA-Z]+)/g, (_all, name) => SIGNS[name] ?? (SPELT.test(name) ? name : ""))
      .replace(/\\_/g, "_").replace(/\\./g, " ").replace(/[\\&{}$]/g, " ").replace(/\s+/g, " ").trim();
  }

  function readableExcerpts() {
    const text = Search.htmlToText;
    Search.htmlToText = (source, anchor) => {
      const page = new DOMParser().parseFromString(source, "text/html");
      page.querySelectorAll(".math").forEach((one) => { one.textContent = readable(one.textContent); });
      page.querySelectorAll(".course-frames, .course-files, .onlyprint").forEach((one) => one.remove());
      return text(page.documentElement.outerHTML, anchor);
    };
  }

  if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
    window.DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;    // a browser does not fetch files
  }
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".cell").forEach(question);
    document.querySelectorAll(".course-frames").forEach(moving);
    if (typeof Search !== "undefined") readableExcerpts();
  });
})();
