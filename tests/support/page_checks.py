"""What a browser is asked about a page: scripts for playwright's `evaluate`."""

# The texts whose contrast is below WCAG's AA, with their two colours.
FAINT = """() => {
  const part = c => { c /= 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4 };
  const light = ([r, g, b]) => .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = e => {
    const colour = e ? numbers(getComputedStyle(e).backgroundColor) : [255, 255, 255];
    return colour.length < 4 || colour[3] > .5 ? colour : behind(e.parentElement) };
  return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() &&
      [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
    const s = getComputedStyle(e), a = light(numbers(s.color)), b = light(behind(e));
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && s.fontWeight >= 700;
    return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), large ? 3 : 4.5, e.textContent.slice(0, 40)];
  }).filter(([ratio, least]) => ratio < least) }"""
LEVELS = "() => [...document.querySelectorAll('h1, h2, h3, h4')].map(e => Number(e.tagName[1]))"
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
