// The form: sentences to try, hints for unknown words, and what to know about a result.

const input = find("#english");

function submit(text) {
  input.value = text;
  translate(text);
}

// A hint for each unknown word; its buttons put the nearest known words in its place.
function suggest(unknown) {
  find("#hint").replaceChildren(...unknown.map((word) => element("p", {},
    `“${word}” is not one of the course's words. Did you mean `,
    ...language.nearest(word).flatMap((known, place) => {
      const button = element("button", { type: "button", class: "chip", text: known });
      button.addEventListener("click", () => replaceWord(word, known));
      return place ? [" ", button] : [button];
    }), "?")));
}

function replaceWord(word, known) {
  const words = language.tokenise(input.value).map((one) => one === word ? known : one);
  input.focus();
  submit(words.join(" "));
}

// What the reader should know about this sentence.
function remark(words) {
  const example = given.examples.find(([english]) => english === words.join(" "));
  const notes = [], unsure = shown.steps.filter(({ p }) => p < 0.5).map(({ p }) => p);
  if (example) {
    const right = example[1].join(" ") === korean().join(" ");
    notes.push(right ? "✓ This is exactly the translation that the course's grammar gives."
      : `✗ The course's grammar would say: ${language.words(example[1]).map(({ text }) => text).join(" ")}`);
  }
  if (words.length > given.trained) {
    notes.push(`This sentence has ${words.length} words. In training no sentence had more than ${given.trained}, `
      + "so expect mistakes.");
  }
  if (unsure.length) {
    notes.push(`The model was unsure: the probability of one token is only ${percent(Math.min(...unsure))}. It has seen `
      + "no sentences but those of the course's grammar, like the ones to try above.");
  }
  if (shown.tokens.at(-1) !== EOS) notes.push(`No <eos> came within ${given.longest} tokens, so decoding stopped there.`);
  find("#remark").replaceChildren(...notes.map((text) => element("p", { text })));
}

// The complete hypotheses of a beam search, best first.
function hypotheses(found) {
  find("#hypotheses").hidden = found.length < 2;
  find("#hypotheses ol").replaceChildren(...found.slice(0, 4).map(({ tokens, log_p }) => {
    const text = language.words(tokens.filter((token) => token !== EOS).map((token) => language.korean[token]));
    return element("li", {}, element("span", { text: text.map((word) => word.text).join(" "), lang: "ko" }),
                   element("small", { text: ` log p = ${log_p.toFixed(2)}` }));
  }));
}

let turn = 0;
function examples() {
  const three = [0, 1, 2].map((place) => given.examples[(turn + place) % given.examples.length][0]);
  turn += 3;
  find("#examples").replaceChildren(...three.map((text) => {
    const button = element("button", { type: "button", class: "chip", text });
    button.addEventListener("click", () => submit(text));
    return button;
  }));
}

function allWords() {
  find("#words").replaceChildren(...[...language.ids.keys()].flatMap((word) => {
    const button = element("button", { type: "button", class: "chip", text: word });
    button.addEventListener("click", () => {
      input.value = `${input.value.trimEnd()} ${word}`.trimStart();
    });
    return [button, " "];
  }));
}

find("#translate").addEventListener("submit", (event) => {
  event.preventDefault();
  translate(input.value);
});
for (const choice of document.querySelectorAll("input[name=decoding]")) {
  choice.addEventListener("change", () => translate(input.value));
}
for (const tab of document.querySelectorAll("#kinds button")) {
  tab.addEventListener("click", () => {
    finish();
    const row = tab.value === "encoder" ? "english" : "korean";
    shown.kind = tab.value;
    choose(row, row === shown.row ? shown.index : 0);
  });
}
find("#whole").addEventListener("toggle", () => {
  finish();
  matrices();
});
find("#more").addEventListener("click", examples);
examples();
allWords();
translate(input.value);
