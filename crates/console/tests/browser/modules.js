// The packages that the tests need. They are outside of the repository.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

/** The folder that `interop/peers/get console` fills. */
function standard() {
  const peers = process.env.OSTLER_PEERS || path.join(os.homedir(), '.cache/ostler-peers');
  return path.join(peers, 'console/node_modules');
}

/** The browser's driver, and the text of the program that looks for barriers. @param {string} [folder] */
export function packages(folder = standard()) {
  const require = createRequire(path.join(path.resolve(folder), 'x.js'));
  try {
    const { chromium } = require('playwright-core');
    return { chromium, axe: fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8') };
  } catch (error) {
    throw new Error(`${folder} lacks a package: ${error.message.split('\n')[0]}. Run interop/peers/get console, or name the folder with --node-modules.`);
  }
}
