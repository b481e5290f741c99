// The options of a command line.

/**
 * The values of `--name VALUE`, and `true` for `--name` alone.
 * @param {string[]} known names without the dashes
 */
export function options(known) {
  const given = process.argv.slice(2);
  const found = {};
  for (let at = 0; at < given.length; at++) {
    const name = given[at].replace(/^--/, '');
    if (!known.includes(name) || !given[at].startsWith('--')) throw new Error(`${given[at]} is no option. There are: ${known.map((one) => `--${one}`).join(' ')}`);
    const value = given[at + 1];
    const hasValue = value !== undefined && !value.startsWith('--');
    found[name] = hasValue ? value : true;
    at += hasValue ? 1 : 0;
  }
  return found;
}
