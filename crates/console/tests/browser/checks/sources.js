// The files of the pages have nothing by which a text becomes markup or a program.

import fs from 'node:fs';
import path from 'node:path';
import { expect } from '../until.js';

const ASSETS = new URL('../../../assets/', import.meta.url).pathname;
/** Ways by which a text becomes a part of a page or a program. */
const FORBIDDEN = /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|srcdoc|createContextualFragment|document\.write(ln)?|eval\s*\(|new Function\b|setTimeout\(\s*['"`])/;

/** @param {string} folder @returns {string[]} */
const files = (folder) => fs.readdirSync(folder, { recursive: true }).map(String).filter((name) => /\.(js|html|svg)$/.test(name));

export default {
  async 'no text becomes markup or a program'() {
    const names = files(ASSETS);
    expect(names.length > 40, `only ${names.length} files`);
    for (const name of names) {
      const lines = fs.readFileSync(path.join(ASSETS, name), 'utf8').split('\n');
      for (const [at, line] of lines.entries()) {
        const found = line.match(FORBIDDEN);
        // Preact has the word for those who want it.
        if (found && !name.startsWith('vendor/')) throw new Error(`${name}:${at + 1} has ${found[0]}`);
      }
    }
  },

  async 'the policy allows nothing unsafe'({ server }) {
    for (const where of ['/console/', '/console/assets/app.js', '/api/v1/me', '/nothing']) {
      const policy = (await fetch(server.base + where)).headers.get('content-security-policy') ?? '';
      expect(/default-src 'none'/.test(policy) && /script-src 'self'(;|$)/.test(policy), `${where}: ${policy}`);
      expect(!/unsafe-|\*|https?:/.test(policy), `${where}: ${policy}`);
    }
  },
};
