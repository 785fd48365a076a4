// The page: a sentence comes in, its translation appears token by token, and clicks choose what is shown of it.

const given = JSON.parse(document.getElementById("data").textContent);
const language = new Language(given);
const model = new Transformer(readWeights(document.getElementById("weights").textContent, given.layout), given);

const find = (selector) => document.querySelector(selector);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const KINDS = { cross: "Cross-attention", self: "Decoder self-attention", encoder: "Encoder self-attention" };
const stage = new Stage(find("#stage"), choose), heads = new Heads(find("#heads"), pin);
let shown = null;      // the translation on the page: words, tokens, steps, encoder, and what of it is chosen
let clock = 0;

function translate(text) {
  const words = language.tokenise(text), unknown = language.unknown(words);
  suggest(unknown);
  if (!words.length || unknown.length) return;
  const ids = words.map((word) => language.ids.get(word)), wide = find("#beam").checked;
  const found = wide ? beam(model, ids, given.longest) : [{ tokens: greedy(model, ids, given.longest) }];
  shown = { text: words.join(" "), words, tokens: found[0].tokens, ...trace(model, ids, found[0].tokens),
            appeared: 0, row: "korean", index: 0, kind: "cross", layer: given.N - 1, head: null };
  find("#result").hidden = false;
  stage.begin(words);
  remark(words);
  hypotheses(wide ? found : []);
  clearTimeout(clock);
  appear();
}

// The next token appears; with calm motion all of them at once.
function appear() {
  do {
    const { token, p } = shown.steps[shown.appeared++];
    stage.addKorean(language.korean[token], token === EOS ? "the end" : language.glosses[token], p);
  } while (calm.matches && shown.appeared < shown.steps.length);
  sentence();
  choose("korean", shown.appeared - 1, true);
  if (shown.appeared < shown.steps.length) clock = setTimeout(appear, Math.min(550, 8000 / shown.steps.length));
  else find("#status").textContent = `Translation: ${find("#sentence").textContent}`;
}

function finish() {
  clearTimeout(clock);
  while (shown.appeared < shown.steps.length) {
    const { token, p } = shown.steps[shown.appeared++];
    stage.addKorean(language.korean[token], token === EOS ? "the end" : language.glosses[token], p);
  }
  sentence();
}

const korean = (count = Infinity) => shown.tokens.slice(0, count).filter((token) => token !== EOS)
  .map((token) => language.korean[token]);

// The Korean so far, as it is written: one span for each word.
function sentence() {
  const words = language.words(korean(shown.appeared)).flatMap(({ text, tokens }) => {
    const word = element("span", { text });
    word.tokens = tokens;
    return [word, " "];
  });
  find("#sentence").replaceChildren(...words.slice(0, -1));
  find("#sentence").classList.toggle("writing", shown.appeared < shown.steps.length);
}

// A token is chosen: by a click, a key, or because it has appeared.
function choose(row, index, appearing = false) {
  if (!appearing) finish();
  const kind = row === "english" ? "encoder" : shown.kind === "encoder" ? "cross" : shown.kind;
  Object.assign(shown, { row, index, kind });
  stage.mark(row, index);
  for (const word of find("#sentence").querySelectorAll("span")) {
    word.classList.toggle("chosen", row === "korean" && word.tokens.includes(index));
  }
  find("#candidates").hidden = row === "english";
  if (row === "korean") {
    showCandidates(find("#candidates ul"), shown.steps[index], language);
    find("#number").textContent = index + 1;
  }
  look();
}

function pin(layer, head) {
  const again = layer === shown.layer && head === shown.head;
  Object.assign(shown, { layer, head: again ? null : head });
  finish();
  lines();
}

// What the chosen token looked at: weights[layer][head][key], and the tokens that the keys are.
function looked() {
  const { kind, index, words, steps, encoder } = shown;
  if (kind === "encoder") return { weights: encoder.map((layer) => layer[index]), keys: words, row: "english" };
  if (kind === "cross") return { weights: steps[index].cross, keys: words, row: "english" };
  return { weights: steps[index].self, keys: ["<bos>", ...korean(index)], row: "korean" };
}

function look() {
  const { weights, keys } = looked();
  for (const tab of document.querySelectorAll("#kinds button")) {
    tab.setAttribute("aria-pressed", tab.value === shown.kind);
  }
  heads.show(shown.kind === "encoder" ? "Encoder" : "Decoder", weights, keys, shown.kind === "self" ? "ko" : "");
  matrices();
  lines();
}

function matrices() {
  if (find("#whole").open && shown.appeared === shown.steps.length) {
    showMatrices(find("#matrices"), shown, shown.tokens.map((token) => language.korean[token]));
  }
}

function lines() {
  const { weights, keys, row } = looked(), { layer, head } = shown;
  heads.mark(layer, head);
  const links = weights[layer].flatMap((one, number) => head === null || head === number
    ? one.map((weight, index) => ({ row, index, head: number, weight })) : []);
  stage.link(shown.kind, links);
  explain(weights, keys);
}

// The strongest look of the chosen layer and heads, in a sentence.
function explain(weights, keys) {
  const { kind, layer, head, index, words } = shown;
  const token = kind === "encoder" ? words[index] : language.korean[shown.tokens[index]];
  const all = weights[layer].flatMap((row, number) => head === null || number === head
    ? row.map((weight, key) => ({ weight, key, number })) : []);
  const { weight, key, number } = all.reduce((a, b) => b.weight > a.weight ? b : a);
  const opening = { cross: `While the decoder chose “${token}”, it looked back at the English words. `,
                    self: `While the decoder chose “${token}”, it looked at its own tokens before that one. `,
                    encoder: `While the encoder read “${token}”, it looked at the whole English sentence. ` }[kind];
  find("#explain").textContent = `${opening}In layer ${layer + 1}, head ${number + 1} `
    + `${head === null ? "looked hardest: it put" : "put"} ${percent(weight)} of its attention on “${keys[key]}”.`;
}
