// Compares two texts line by line.

/** A run of lines that are in both, in the first (`-`) or in the second (`+`). @typedef {{kind: ' ' | '-' | '+', lines: string[]}} Run */

/** More changes than these are shown as one block. */
const MOST_CHANGES = 800;

/** @param {string} first @param {string} second @returns {Run[]} */
export function diff(first, second) {
  const a = first.split('\n');
  const b = second.split('\n');
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = changes(a.slice(start, a.length - end), b.slice(start, b.length - end));
  /** @type {Run[]} */
  const runs = [{ kind: ' ', lines: a.slice(0, start) }];
  for (const [kind, line] of middle) {
    const last = runs[runs.length - 1];
    if (last.kind === kind) last.lines.push(line);
    else runs.push({ kind, lines: [line] });
  }
  const tail = a.slice(a.length - end);
  if (runs[runs.length - 1].kind === ' ') runs[runs.length - 1].lines.push(...tail);
  else runs.push({ kind: ' ', lines: tail });
  return runs.filter(({ lines }) => lines.length > 0);
}

/** The shortest way from one list of lines to the other (Myers). @param {string[]} a @param {string[]} b @returns {[Run['kind'], string][]} */
function changes(a, b) {
  const most = Math.min(MOST_CHANGES, a.length + b.length);
  let ends = new Map([[1, 0]]);
  const steps = [];
  for (let d = 0; d <= most; d++) {
    steps.push(new Map(ends));
    for (let k = -d; k <= d; k += 2) {
      const [left, right] = [ends.get(k - 1) ?? -1, ends.get(k + 1) ?? -1];
      let x = k === -d || (k !== d && left < right) ? right : left + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      ends.set(k, x);
      if (x >= a.length && x - k >= b.length) return back(a, b, steps);
    }
  }
  return [...a.map((line) => /** @type {[Run['kind'], string]} */ (['-', line])), ...b.map((line) => /** @type {[Run['kind'], string]} */ (['+', line]))];
}

/** @param {string[]} a @param {string[]} b @param {Map<number, number>[]} steps @returns {[Run['kind'], string][]} */
function back(a, b, steps) {
  /** @type {[Run['kind'], string][]} */
  const found = [];
  let [x, y] = [a.length, b.length];
  for (let d = steps.length - 1; d >= 0; d--) {
    const k = x - y;
    const ends = steps[d];
    const [left, right] = [ends.get(k - 1) ?? -1, ends.get(k + 1) ?? -1];
    const isDown = k === -d || (k !== d && left < right);
    const before = isDown ? right : left;
    const start = isDown ? before : before + 1;
    while (d > 0 ? x > start : x > 0) {
      found.push([' ', a[--x]]);
      y--;
    }
    if (d === 0) break;
    if (isDown) found.push(['+', b[--y]]);
    else found.push(['-', a[--x]]);
  }
  return found.reverse();
}
