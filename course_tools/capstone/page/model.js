// The Transformer of lesson 12 for one sentence: the names and the order of course_lib/models/transformer.py.
// A vector is a Float64Array of d_model numbers.  A weight matrix is (d_out, d_in), row by row, as in torch.

function readWeights(base64, layout) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer), weights = {};
  let first = 0;
  for (const [name, shape] of layout) {
    weights[name] = numbers.subarray(first, first += shape.reduce((a, b) => a * b));
  }
  return weights;
}

const add = (a, b) => a.map((value, i) => value + b[i]);

// x W^T + b; without b if there is none
function linear(x, W, b) {
  const y = new Float64Array(W.length / x.length);
  for (let row = 0, place = 0; row < y.length; row++) {
    let sum = b ? b[row] : 0;
    for (let column = 0; column < x.length; column++) sum += W[place++] * x[column];
    y[row] = sum;
  }
  return y;
}

// gamma (x - mean) / sqrt(var + eps) + beta
function layerNorm(x, gamma, beta, eps = 1e-5) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  return x.map((value, i) => gamma[i] * (value - mean) / Math.sqrt(variance + eps) + beta[i]);
}

function softmax(scores) {
  const highest = Math.max(...scores), e = Array.from(scores, (score) => Math.exp(score - highest));
  const sum = e.reduce((a, b) => a + b, 0);
  return e.map((value) => value / sum);
}

// softmax(q K^T / sqrt(d_k)) V for each head  ->  the outputs side by side, and weights[head][key]
function attention(q, { keys, values }, h) {
  const d_k = q.length / h, output = new Float64Array(q.length), weights = [];
  for (let first = 0; first < q.length; first += d_k) {
    const scores = keys.map((k) => {
      let product = 0;
      for (let c = first; c < first + d_k; c++) product += q[c] * k[c];
      return product / Math.sqrt(d_k);
    });
    const p = softmax(scores);
    p.forEach((weight, j) => {
      for (let c = first; c < first + d_k; c++) output[c] += weight * values[j][c];
    });
    weights.push(p);
  }
  return { output, weights };
}

class Transformer {
  constructor(weights, { d_model, h, N }) {
    Object.assign(this, { weights, d_model, h, N });
  }

  linear(x, name) {
    return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  norm(x, name) {
    return layerNorm(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  // the embedding times sqrt(d_model), plus the sines and cosines of the position
  embed(side, id, position) {
    const { d_model } = this, E = this.weights[`${side}.weight`].subarray(id * d_model, (id + 1) * d_model);
    return Float64Array.from(E, (value, c) => {
      const angle = position / 10000 ** ((c - c % 2) / d_model);
      return value * Math.sqrt(d_model) + (c % 2 ? Math.cos(angle) : Math.sin(angle));
    });
  }

  keysAndValues(xs, name) {
    return { keys: xs.map((x) => this.linear(x, `${name}.W_K`)),
             values: xs.map((x) => this.linear(x, `${name}.W_V`)) };
  }

  // one query over all heads  ->  what W_O gives, and weights[head][key]
  attend(x, looked_at, name) {
    const { output, weights } = attention(this.linear(x, `${name}.W_Q`), looked_at, this.h);
    return { output: this.linear(output, `${name}.W_O`), weights };
  }

  feedForward(x, block) {
    const hidden = this.linear(x, `${block}.feed_forward.W_1`).map((value) => Math.max(0, value));
    return this.linear(hidden, `${block}.feed_forward.W_2`);
  }

  // ids  ->  memory, one vector for each word, and weights[layer][word][head][word]
  encode(ids) {
    let memory = ids.map((id, position) => this.embed("source", id, position));
    const weights = [];
    for (let layer = 0; layer < this.N; layer++) {
      const block = `encoder.${layer}`, all = this.keysAndValues(memory, `${block}.attention`);
      const looked = memory.map((x) => this.attend(x, all, `${block}.attention`));
      memory = memory.map((x, i) => {
        x = this.norm(add(x, looked[i].output), `${block}.norm_1`);
        return this.norm(add(x, this.feedForward(x, block)), `${block}.norm_2`);
      });
      weights.push(looked.map((one) => one.weights));
    }
    return { memory, weights };
  }

  // the state before the first token: nothing past yet, and the keys and values of the English words
  begin(memory) {
    const blocks = Array.from({ length: this.N }, (_, layer) => `decoder.${layer}`);
    return { position: 0, past: blocks.map(() => ({ keys: [], values: [] })),
             memory: blocks.map((block) => this.keysAndValues(memory, `${block}.cross_attention`)) };
  }

  // the token before  ->  logits of the next one, self[layer][head][token], cross[layer][head][word], state
  step(token, { position, past, memory }) {
    let y = this.embed("target", token, position);
    const after = [], self = [], cross = [];
    for (let layer = 0; layer < this.N; layer++) {
      const block = `decoder.${layer}`, newest = this.keysAndValues([y], `${block}.self_attention`);
      const so_far = { keys: [...past[layer].keys, ...newest.keys],
                       values: [...past[layer].values, ...newest.values] };
      const own = this.attend(y, so_far, `${block}.self_attention`);
      y = this.norm(add(y, own.output), `${block}.norm_1`);
      const across = this.attend(y, memory[layer], `${block}.cross_attention`);
      y = this.norm(add(y, across.output), `${block}.norm_2`);
      y = this.norm(add(y, this.feedForward(y, block)), `${block}.norm_3`);
      after.push(so_far); self.push(own.weights); cross.push(across.weights);
    }
    return { logits: this.linear(y, "target"), self, cross, state: { position: position + 1, past: after, memory } };
  }
}
