// Greedy decoding and beam search, as in course_lib/decoding.py, and what the page shows of each step.

const BOS = 1, EOS = 2;

function best(numbers, count) {
  return Array.from(numbers.keys()).sort((a, b) => numbers[b] - numbers[a] || a - b).slice(0, count);
}

// The likeliest token at each step, up to <eos> or `longest` of them.
function greedy(model, ids, longest) {
  const tokens = [];
  let state = model.begin(model.encode(ids).memory), token = BOS, logits;
  while (tokens.length < longest && token !== EOS) {
    ({ logits, state } = model.step(token, state));
    [token] = best(logits, 1);
    tokens.push(token);
  }
  return tokens;
}

// The `width` best partial hypotheses at once; score: log p / ((5 + length) / 6)^alpha.  All that ended, best first.
function beam(model, ids, longest, width = 4, alpha = 0.6) {
  const penalty = (length) => ((5 + length) / 6) ** alpha, finished = [];
  let live = [{ log_p: 0, tokens: [], state: model.begin(model.encode(ids).memory) }];
  for (let length = 1; length <= longest && live.length; length++) {
    const longer = live.flatMap((one) => {
      const { logits, state } = model.step(one.tokens.at(-1) ?? BOS, one.state), p = softmax(logits);
      return best(logits, width).map((token) => (
        { log_p: one.log_p + Math.log(p[token]), tokens: [...one.tokens, token], state }));
    }).sort((a, b) => b.log_p - a.log_p).slice(0, width);
    live = longer.filter((one) => one.tokens.at(-1) !== EOS);
    for (const one of longer) {
      if (!live.includes(one)) finished.push({ ...one, score: one.log_p / penalty(length) });
    }
    const highest = Math.max(...finished.map((one) => one.score));      // -Infinity if there is none
    if (live.length && live[0].log_p / penalty(longest) <= highest) break;
  }
  return finished.length ? finished.sort((a, b) => b.score - a.score) : live;
}

// The model's step for each of these tokens: its probability, the likeliest candidates, where the heads looked.
function trace(model, ids, tokens) {
  const { memory, weights } = model.encode(ids);
  let state = model.begin(memory), before = BOS;
  const steps = tokens.map((token) => {
    const step = model.step(before, state), p = softmax(step.logits);
    ({ state } = step);
    before = token;
    return { token, p: p[token], top: best(step.logits, 5).map((one) => ({ token: one, p: p[one] })),
             self: step.self, cross: step.cross };
  });
  return { encoder: weights, steps };
}
