// Waits for what can be seen.

/** A busy machine needs long for an election. */
export const PATIENCE = 30_000;

/**
 * The first result of `ask` that is true. An error counts as not yet.
 * @template T
 * @param {string} what
 * @param {() => T | Promise<T>} ask
 * @returns {Promise<T>}
 */
export async function until(what, ask, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    let last;
    try {
      last = await ask();
      if (last) return last;
    } catch (error) {
      last = error.message;
    }
    if (Date.now() > end) throw new Error(`not within ${patience / 1000} s: ${what}; last: ${JSON.stringify(last)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** @param {unknown} is @param {string} what */
export function expect(is, what) {
  if (!is) throw new Error(what);
}
