// All the weights of one kind of attention as matrices, one for each head: rows are queries, columns are keys.

const CELL = 20, LEFT = 64, TOP = 66;

function svgElement(tag, properties, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// rows[query][key]; chosen: the row to frame
function matrix(rows, queries, keys, chosen) {
  const width = LEFT + CELL * keys.length + 34, height = TOP + CELL * queries.length + 2;
  const picture = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": true });
  keys.forEach((key, j) => picture.append(svgElement(
    "text", { transform: `translate(${LEFT + CELL * (j + 0.6)},${TOP - 6}) rotate(-55)` }, key)));
  rows.forEach((row, i) => {
    const y = TOP + CELL * i;
    picture.append(svgElement("text", { x: LEFT - 6, y: y + 14.5, "text-anchor": "end" }, queries[i]));
    row.forEach((weight, j) => picture.append(svgElement("rect", {
      x: LEFT + CELL * j, y, width: CELL - 1.5, height: CELL - 1.5, rx: 3, "fill-opacity": 0.06 + 0.94 * weight })));
  });
  picture.append(svgElement("rect", { class: "frame", x: LEFT - 2, y: TOP + CELL * chosen - 2,
                                      width: CELL * rows[chosen].length + 2.5, height: CELL + 2.5, rx: 4 }));
  return picture;
}

// What `looked` gives for one token, for all tokens of the row at once.
function showMatrices(root, { kind, index, words, steps, encoder }, tokens) {
  const rows = { cross: (layer, head) => steps.map((step) => step.cross[layer][head]),
                 self: (layer, head) => steps.map((step) => step.self[layer][head]),
                 encoder: (layer, head) => words.map((_, word) => encoder[layer][word][head]) }[kind];
  const keys = kind === "self" ? ["<bos>", ...tokens.slice(0, -1)] : words;
  root.replaceChildren(...encoder.flatMap((layer, number) => layer[0].map((_, head) => element(
    "figure", { class: `head-${head % 4}` },
    element("figcaption", { text: `layer ${number + 1}, head ${head + 1}` }),
    matrix(rows(number, head), kind === "encoder" ? words : tokens, keys, index)))));
}
