// English text to tokens and Korean tokens to text, as course_lib/data/english_korean.py does it.

class Language {
  constructor({ english, korean, gloss, joins, endings, copulas, joined }) {
    Object.assign(this, { english, korean, glosses: gloss, joins, copulas });
    this.ids = new Map(english.map((word, id) => [word, id]).slice(4));    // without <pad> <bos> <eos> <unk>
    this.spelling = new Map([...this.ids.keys()].map((word) => [word.toLowerCase(), word]));
    this.ending = new Map(endings.map((ending, place) => [ending, place]));
    this.joined = new Set(joined);
  }

  // small letters but for I and names, no punctuation, don't → do not
  tokenise(text) {
    const words = text.toLowerCase().replace(/n['’]t\b/g, " not").match(/[\p{L}\p{N}_']+/gu) ?? [];
    return words.map((word) => this.spelling.get(word) ?? word);
  }

  unknown(words) {
    return [...new Set(words)].filter((word) => !this.ids.has(word));
  }

  // The known words with the fewest edits; among equals those that begin alike.
  nearest(word, count = 3) {
    const alike = (known) => [...known].findIndex((letter, i) => letter.toLowerCase() !== word[i]);
    const ranked = [...this.ids.keys()].map((known) => {
      const prefix = alike(known);
      return { known, edits: distance(word, known.toLowerCase()), prefix: prefix < 0 ? known.length : prefix };
    });
    ranked.sort((a, b) => a.edits - b.edits || b.prefix - a.prefix);
    const most = Math.max(ranked[0].edits, 2);
    return ranked.slice(0, count).filter(({ edits }) => edits <= most).map(({ known }) => known);
  }

  // Korean tokens  ->  words as written, [{text, tokens: the places of its tokens}]
  words(tokens) {
    const words = [];
    tokens.forEach((token, place) => {
      const last = words.at(-1);
      const piece = last && this.attach(last.text, token);
      if (piece === undefined) words.push({ text: token, tokens: [place] });
      else { last.text = piece; last.tokens.push(place); }
    });
    return words;
  }

  // the word with the token joined to it; undefined if the token begins a new word
  attach(word, token) {
    if (token in this.copulas) return word + this.copulas[token][endsInVowel(word) ? 1 : 0];
    if (this.joined.has(token)) return word + token;
    if (this.ending.has(token) && word in this.joins) return this.joins[word][this.ending.get(token)];
    return undefined;
  }
}

// A Hangul syllable without a final consonant: every 28th of them.
const endsInVowel = (word) => /[가-힣]$/.test(word) && (word.charCodeAt(word.length - 1) - 0xac00) % 28 === 0;

// Levenshtein's distance, with an exchange of two neighbours as one edit.
function distance(a, b) {
  const d = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  for (let j = 1; j <= b.length; j++) d[0][j] = j;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      d[i][j] = Math.min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] !== b[j - 1]));
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) d[i][j] = Math.min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.length][b.length];
}
