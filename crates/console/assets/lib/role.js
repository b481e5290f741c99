// A server's role as a letter in a shape, and in words.

import { html } from './html.js';

/** @type {Record<string, [string, string, string]>} letter, shape, words */
const ROLES = {
  leading: ['L', 'M10 .8l8.2 4.7v9l-8.2 4.7-8.2-4.7v-9z', 'leads'],
  following: ['F', 'M2 2h16v16H2z', 'follows'],
  observing: ['O', 'M10 1a9 9 0 100 18 9 9 0 000-18z', 'observes'],
  looking: ['?', 'M10 .5L19.5 10 10 19.5.5 10z', 'looks for a leader'],
  standalone: ['S', 'M2 2h16v16H2z', 'is standalone'],
  read_only: ['R', 'M10 1a9 9 0 100 18 9 9 0 000-18z', 'serves reads only'],
};

/** @param {string | null | undefined} role */
export const roleInWords = (role) => ROLES[role ?? '']?.[2] ?? 'role not known';

/** @param {{role: string | null | undefined}} props */
export function RoleMark({ role }) {
  const [letter, shape] = ROLES[role ?? ''] ?? ['×', 'M2 2h16v16H2z'];
  return html`<svg class="role ${role ?? 'unknown'}" viewBox="0 0 20 20" aria-hidden="true"><path d=${shape} /><text x="10" y="14" text-anchor="middle">${letter}</text></svg>`;
}
