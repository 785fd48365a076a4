// The two rows of tokens, English above Korean, and the lines from the chosen token to where the heads looked.

function element(tag, { text, ...properties } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

const percent = (p) => p >= 0.9995 ? "100 %" : p >= 0.0995 ? `${(100 * p).toFixed(0)} %` : `${(100 * p).toFixed(1)} %`;
const svg = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);

class Stage {
  // choose(row, index) is called when a token is clicked; row: 'english' or 'korean'
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.rows = { english: root.querySelector(".english"), korean: root.querySelector(".korean") };
    this.lines = root.querySelector("svg");
    for (const [name, row] of Object.entries(this.rows)) {
      row.addEventListener("click", (event) => {
        const token = event.target.closest("button");
        if (token) choose(name, this.tokens(name).indexOf(token));
      });
      row.addEventListener("keydown", (event) => this.move(name, event));
    }
    new ResizeObserver(() => this.draw()).observe(root);
  }

  tokens(row) {
    return [...this.rows[row].querySelectorAll("button")];
  }

  begin(words) {
    this.rows.english.replaceChildren(...words.map((word) => element(
      "button", { class: "token", type: "button" }, element("b", { text: word }))));
    this.rows.korean.replaceChildren(element("span", { class: "token start", title: "the beginning" },
                                             element("b", { text: "<bos>" })));
    this.chosen = null;
    this.links = [];
    this.draw();
  }

  addKorean(token, meaning, p) {
    const bar = element("i", { class: "sure" });
    bar.style.setProperty("--p", p);
    this.rows.korean.append(element(
      "button", { class: "token", type: "button", "aria-label": `${token}, ${meaning}, ${percent(p)}` },
      element("b", { text: token }), element("small", { text: meaning, lang: "en" }), bar));
  }

  // The arrow keys go along a row; only one token of each row is a stop of the tab key.
  move(row, event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const tokens = this.tokens(row), next = tokens[tokens.indexOf(document.activeElement) + by];
    if (next) {
      next.focus();
      this.choose(row, tokens.indexOf(next));
    }
  }

  mark(row, index) {
    this.chosen = this.tokens(row)[index];
    for (const name of ["english", "korean"]) {
      const tokens = this.tokens(name), stop = tokens.includes(this.chosen) ? this.chosen : tokens.at(-1);
      for (const token of tokens) {
        token.setAttribute("aria-pressed", token === this.chosen);
        token.tabIndex = token === stop ? 0 : -1;
      }
    }
  }

  // links: [{row, index, head, weight}], index counts <bos> too; kind: where the lines run
  link(kind, links) {
    this.root.dataset.kind = kind;
    this.links = links;
    const mean = new Map();
    for (const { row, index, weight } of links) {
      const token = this.rows[row].children[index];
      mean.set(token, Math.max(mean.get(token) ?? 0, weight));
    }
    for (const token of this.root.querySelectorAll(".token")) {
      token.style.setProperty("--looked", mean.get(token) ?? 0);
    }
    this.draw();
  }

  draw() {
    this.lines.replaceChildren();
    if (!this.chosen) return;
    const frame = this.root.getBoundingClientRect(), heads = Math.max(...this.links.map(({ head }) => head)) + 1;
    const place = (token, head) => {
      const box = token.getBoundingClientRect(), aside = (head - (heads - 1) / 2) * Math.min(7, box.width / (heads + 1));
      return { x: box.left - frame.left + box.width / 2 + aside, top: box.top - frame.top, bottom: box.bottom - frame.top };
    };
    for (const { row, index, head, weight } of this.links) {
      if (weight < 0.02) continue;
      const from = place(this.chosen, head), to = place(this.rows[row].children[index], head), line = svg("path");
      line.setAttribute("d", curve(this.root.dataset.kind, from, to));
      line.setAttribute("class", `head-${head % 4}`);
      line.setAttribute("stroke-width", 1 + 6 * weight);
      line.setAttribute("opacity", 0.2 + 0.7 * weight);
      this.lines.append(line);
    }
  }
}

// From a Korean token up to an English word; else an arc above the English row or below the Korean one.
function curve(kind, from, to) {
  if (kind === "cross") {
    const middle = (from.top + to.bottom) / 2;
    return `M${from.x},${from.top} C${from.x},${middle} ${to.x},${middle} ${to.x},${to.bottom}`;
  }
  const above = kind === "encoder", a = above ? from.top : from.bottom, b = above ? to.top : to.bottom;
  const reach = (above ? -1 : 1) * Math.min(44, 16 + Math.abs(from.x - to.x) / 6);
  if (Math.abs(from.x - to.x) < 1 && a === b) {
    return `M${from.x - 9},${a} C${from.x - 16},${a + reach * 1.2} ${to.x + 16},${b + reach * 1.2} ${to.x + 9},${b}`;
  }
  return `M${from.x},${a} C${from.x},${a + reach} ${to.x},${b + reach} ${to.x},${b}`;
}
