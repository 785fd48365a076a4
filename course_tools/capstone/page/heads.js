// A card for each head of each layer: how much of its attention each token gets.

class Heads {
  // pin(layer, head) is called when a card is clicked; head null: all heads of the layer
  constructor(root, pin) {
    this.root = root;
    this.pin = pin;
  }

  // weights[layer][head][key]; keys: the texts of the tokens that were looked at; name: of the layers
  show(name, weights, keys, lang) {
    this.cards = [];
    this.root.replaceChildren(...weights.map((heads, layer) => {
      const all = element("button", { type: "button", class: "all", text: "all heads" });
      all.addEventListener("click", () => this.pin(layer, null));
      const cards = heads.map((row, head) => this.card(row, layer, head, keys, lang));
      this.cards.push({ all, cards });
      return element("div", { class: "layer" },
        element("h4", { text: `${name}, layer ${layer + 1} ` }, all), element("div", { class: "cards" }, ...cards));
    }));
  }

  card(row, layer, head, keys, lang) {
    const most = Math.max(...row);
    const bars = keys.map((key, place) => {
      const bar = element("span", { class: row[place] === most ? "bar most" : "bar" },
        element("span", { class: "key", text: key, ...(lang && key[0] !== "<" ? { lang } : {}) }),
        element("span", { class: "track" }, element("i")), element("span", { class: "value", text: percent(row[place]) }));
      bar.style.setProperty("--p", row[place]);
      return bar;
    });
    const card = element("button", { type: "button", class: `card head-${head % 4}` },
      element("span", { class: "name", text: `head ${head + 1}` }), ...bars);
    card.addEventListener("click", () => this.pin(layer, head));
    return card;
  }

  mark(layer, head) {
    this.cards.forEach(({ all, cards }, row) => {
      all.setAttribute("aria-pressed", row === layer && head === null);
      cards.forEach((card, column) => {
        card.setAttribute("aria-pressed", row === layer && column === head);
        card.classList.toggle("drawn", row === layer && (head === null || column === head));
      });
    });
  }
}

// The likeliest tokens of one step, as bars.
function showCandidates(root, step, language) {
  root.replaceChildren(...step.top.map(({ token, p }) => {
    const row = element("li", { class: token === step.token ? "bar most" : "bar" },
      element("span", { class: "key" }, element("b", { text: language.korean[token], lang: "ko" }),
                                        element("small", { text: language.glosses[token] })),
      element("span", { class: "track" }, element("i")), element("span", { class: "value", text: percent(p) }));
    row.style.setProperty("--p", p);
    return row;
  }));
}
