// The page to sign in: by user and password, by a client certificate, or by SASL.

import { html, useState } from '../lib/html.js';
import { loadMe, post, useMe } from '../lib/api.js';
import { reconnect } from '../lib/live.js';
import { ErrorBox } from '../lib/states.js';
import { Text } from '../lib/words.js';

/** @type {Record<string, [string, string]>} */
const SCHEMES = {
  digest: ['User and password', 'The server makes the identity digest:USER:HASH from them. ZooKeeper knows no wrong password: another one is another identity, which may read less.'],
  sasl: ['SASL', 'The server checks user and password by its SASL configuration.'],
  x509: ['Client certificate', 'The browser sends its certificate with the connection. There is nothing to type.'],
};

/** @param {import('../lib/route.js').PageProps} props */
export default function SignIn({ query, go }) {
  const me = useMe();
  const [scheme, setScheme] = useState('digest');
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    setBusy(true);
    try {
      await post('/sign-in', { scheme, user: form.get('user') ?? '', password: form.get('password') ?? '' }, { quiet: true });
      await loadMe();
      reconnect();
      // Only a page of this console can be gone back to.
      if (query.back?.startsWith('#/')) location.hash = query.back;
      else go({}, { page: 'ensemble' });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<form class="panel sign-in" onSubmit=${submit}>
    <h1>Sign in</h1>
    ${me && html`<p class="muted">Now: <${Text} of=${me.ids.map(({ scheme, id }) => `${scheme}:${id}`).join(', ') || 'nobody'} /></p>`}
    <label class="field">How<select value=${scheme} onChange=${(/** @type {any} */ event) => setScheme(event.target.value)}>
      ${Object.entries(SCHEMES).map(([key, [title]]) => html`<option key=${key} value=${key}>${title}</option>`)}</select></label>
    ${scheme !== 'x509' && html`
      <label class="field">User<input name="user" required autocomplete="username" spellcheck=${false} /></label>
      <label class="field">Password<input name="password" type="password" autocomplete="current-password" /></label>`}
    <p class="muted">${SCHEMES[scheme][1]}</p>
    ${error && html`<${ErrorBox} error=${{ ...error, sentence: error.sentence, code: error.code, status: 0 }} />`}
    <div class="row"><button class="primary" disabled=${isBusy}>Sign in</button></div>
  </form>`;
}
