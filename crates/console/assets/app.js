// The shell: header, navigation, and the page that the URL names. A page's module is loaded when it is opened.

import { Fragment, html, render, useEffect, useLayoutEffect, useRef, useState } from './lib/html.js';
import { loadMe, post, useMe, useRefusal } from './lib/api.js';
import { Dialog } from './lib/dialog.js';
import { allKeys, useKeys, useSearchKey } from './lib/keys.js';
import { pause, reconnect, useConnection, useEvents } from './lib/live.js';
import { go, link, useRoute } from './lib/route.js';
import { ErrorBox, Guard, Loading, Note } from './lib/states.js';
import { Copy, Text, zxid } from './lib/words.js';
import { RoleMark, roleInWords } from './lib/role.js';

/** The pages: name, title, the letter after `g`, module. @type {[string, string, string, string][]} */
const PAGES = [
  ['ensemble', 'Ensemble', 'e', './pages/ensemble.js'],
  ['elections', 'Elections', 'v', './pages/elections.js'],
  ['tree', 'Tree', 't', './tree/page.js'],
  ['sessions', 'Sessions', 's', './pages/sessions.js'],
  ['leadership', 'Leadership', 'l', './pages/leadership.js'],
  ['watches', 'Watches', 'w', './pages/watches.js'],
  ['operations', 'Slow and hot', 'o', './pages/operations.js'],
  ['metrics', 'Metrics', 'm', './pages/metrics.js'],
  ['configuration', 'Configuration', 'c', './pages/configuration.js'],
  ['disk', 'Disk', 'd', './pages/disk.js'],
  ['clients', 'Clients', 'i', './pages/clients.js'],
  ['sign-in', 'Sign in', 'n', './pages/sign-in.js'],
];
const IN_NAVIGATION = PAGES.filter(([name]) => name !== 'sign-in');
const EVERYWHERE = 'Everywhere';
const THEMES = ['auto', 'light', 'dark'];

function App() {
  const { page, query } = useRoute();
  const [showsKeys, showKeys] = useState(false);
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const [, title] = PAGES.find(([name]) => name === page) ?? [page, 'No such page'];
  const isFirst = useRef(true);
  useSearchKey();
  useKeys(EVERYWHERE, {
    ...Object.fromEntries(IN_NAVIGATION.map(([name, , letter]) => [`g ${letter}`, () => go({}, { page: name })])),
    '?': () => showKeys(true),
  });
  useEffect(() => {
    document.title = `${title} · Ostler`;
    // On a telephone the pages are a line that is longer than the window.
    document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [page]);
  return html`<div class="shell">
    <a class="skip button" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); main.current?.focus(); }}>To the content</a>
    <${Header} />
    <nav class="side" aria-label="Pages"><ul>${IN_NAVIGATION.map(([name, title, letter]) => html`<li key=${name}>
      <a href=${link(name)} aria-current=${name === page ? 'page' : undefined}>${title}<kbd aria-hidden="true">g ${letter}</kbd></a></li>`)}</ul></nav>
    <main id="main" tabindex="-1" ref=${main}><${Guard} key=${page}><${Page} name=${page} title=${title} query=${query} /></></main>
    ${showsKeys && html`<${Keys} onClose=${() => showKeys(false)} />`}
  </div>`;
}

/** The page, or why there is none: a server that does not tell who one is shows nothing else.
 *  @param {{name: string, title: string, query: Record<string, string>}} props */
function Page({ name, title, query }) {
  const me = useMe();
  const refusal = useRefusal();
  const { refusal: noEvents } = useConnection();
  const box = refusal && html`<${ErrorBox} error=${refusal} retry=${() => loadMe().catch(() => {})} />`;
  if (box && !me) return html`<h1>${title}</h1>${box}`;
  return html`${box}${noEvents && html`<${Note} level="warning" sentence=${noEvents} way_out="Until then the page asks the server every 5 s." />`}<${Module} name=${name} query=${query} />`;
}

/** @param {{name: string, query: Record<string, string>}} props */
function Module({ name, query }) {
  const [loaded, set] = useState(/** @type {{View?: any, error?: any}} */ ({}));
  const entry = PAGES.find(([one]) => one === name);
  const load = () => {
    set({});
    if (entry) import(entry[3]).then((module) => set({ View: module.default }), (error) => set({ error }));
  };
  useEffect(load, [name]);
  if (!entry) return html`<h1>No such page</h1><p>There is no page <code><${Text} of=${name} /></code>. <a href=${link('ensemble')}>Open Ensemble</a></p>`;
  if (loaded.error) {
    const sentence = `The page ${entry[1]} did not load: ${loaded.error.message}`;
    // A module that failed once stays failed for the browser, so the whole document is loaded anew.
    return html`<h1>${entry[1]}</h1><${ErrorBox} error=${{ sentence, code: 'PAGE' }} retry=${() => location.reload()} />`;
  }
  return loaded.View ? html`<${loaded.View} query=${query} go=${go} />` : html`<${Loading} rows=${6} />`;
}

function Header() {
  const me = useMe();
  const ensemble = useEvents('ensemble', '/ensemble', { quiet: true, off: !me?.viewer });
  const connection = useConnection();
  const { data } = ensemble;
  const own = data?.servers.find((/** @type {any} */ server) => server.id === me?.server.id);
  const last = connection.zxid ?? own?.zxid;
  return html`<header class="top">
    <a class="brand" href=${link('ensemble')}><img src="assets/icon.svg" alt="" />Ostler</a>
    <span class="name" title=${data?.name}>${data && html`<${Text} of=${data.name} />`}</span>
    <span class="facts-line">
      ${data && !me?.server.standalone && html`<span>served by ${data.served_by} of ${`{${data.servers.map((/** @type {any} */ { id }) => id).join(', ')}}`}</span>`}
      ${own && html`<span class="row-tight"><${RoleMark} role=${own.role} /> ${roleInWords(own.role)}</span>`}
      ${last && html`<span class="row-tight"><code>${zxid(last)}</code><${Copy} text=${last} what="the last zxid" /></span>`}
    </span>
    <span class="who">
      ${me?.read_only && html`<span class="badge">read-only</span>`}
      <${Dot} connection=${connection} />
      ${me && html`<${Identity} me=${me} />`}
      <${Theme} />
    </span>
  </header>`;
}

/** @param {{connection: ReturnType<typeof useConnection>}} props */
function Dot({ connection }) {
  const { state, polls, paused } = connection;
  const shown = paused ? 'paused' : state;
  const why = /** @type {Record<string, string>} */ ({
    paused: 'The page changes when you go on.', connecting: 'The page connects to the server.',
    live: polls ? 'The server is asked every 5 s, because its events do not come through.' : 'The server sends each change. Press to pause.',
    stale: 'Nothing came from the server for 7 s.', lost: 'The server does not answer. The page tries again every 5 s.',
  })[shown];
  // Each state has a shape of its own.
  const shape = /** @type {Record<string, string>} */ ({ live: 'M6 1a5 5 0 100 10A5 5 0 006 1z', stale: 'M6 1l5.5 10H.5z', lost: 'M2.5 1L6 4.5 9.5 1 11 2.5 7.5 6 11 9.5 9.5 11 6 7.5 2.5 11 1 9.5 4.5 6 1 2.5z', paused: 'M2 1h3v10H2zM7 1h3v10H7z', connecting: 'M5 5h2v2H5z' })[shown];
  return html`<button type="button" class="plain dot ${shown}" title=${why} aria-pressed=${paused} onClick=${() => pause(!paused)}>
    <svg viewBox="0 0 12 12" aria-hidden="true"><path d=${shape} /></svg><span role="status">${shown}</span></button>`;
}

/** @param {{me: import('./lib/api.js').Me}} props */
function Identity({ me }) {
  const isSignedIn = me.super || me.ids.some(({ scheme }) => scheme !== 'ip' && scheme !== 'world');
  const out = async () => {
    await post('/sign-out');
    await loadMe();
    reconnect();
  };
  const ids = me.ids.map(({ scheme, id }) => `${scheme}:${id}`).join('\n');
  if (!isSignedIn) return html`<a class="button" href=${link('sign-in', { back: location.hash })}>Sign in</a>`;
  return html`<span title=${ids}><${Text} of=${me.name ?? ids} />${me.super ? ' (super)' : ''}</span><button type="button" class="plain" onClick=${out}>Sign out</button>`;
}

function Theme() {
  const [theme, set] = useState(() => localStorage.getItem('theme') ?? 'auto');
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem('theme', theme);
  }, [theme]);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  const shape = /** @type {Record<string, string>} */ ({ auto: 'M8 2a6 6 0 100 12z', light: 'M8 5a3 3 0 100 6 3 3 0 000-6zM8 0v2.5M8 13.5V16M0 8h2.5M13.5 8H16M2.5 2.5l1.6 1.6M11.9 11.9l1.6 1.6M13.5 2.5l-1.6 1.6M4.1 11.9l-1.6 1.6', dark: 'M13 9.5A5.5 5.5 0 016.5 3a5.5 5.5 0 106.5 6.5z' })[theme];
  return html`<button type="button" class="plain theme" aria-label="Colours: ${theme}. Change to ${next}" title="Colours: ${theme}" onClick=${() => set(next)}>
    <svg viewBox="0 0 16 16" aria-hidden="true">${theme === 'auto' && html`<circle cx="8" cy="8" r="6" class="hollow" />`}<path d=${shape} /></svg></button>`;
}

const NAMES = /** @type {Record<string, string>} */ ({ ArrowLeft: '←', ArrowRight: '→', ' ': 'Space' });

/** @param {{onClose: () => void}} props */
function Keys({ onClose }) {
  const pages = new Map(IN_NAVIGATION.map(([, title, letter]) => [`g ${letter}`, title]));
  const rows = allKeys().flatMap(({ help, keys }) => (help === EVERYWHERE ? keys.map((key) => [key === '?' ? 'This list' : pages.get(key), key]) : [[help, keys.map((key) => NAMES[key] ?? key).join('  ')]]));
  return html`<${Dialog} title="Keys" onClose=${onClose}><dl class="facts">${rows.map(([help, keys]) => html`<${Fragment} key=${help}><dt><kbd class="mono">${keys}</kbd></dt><dd>${help}</dd></>`)}</dl></>`;
}

document.body.replaceChildren();
render(html`<${App} />`, document.body);
const untilKnown = () => void loadMe().catch(() => setTimeout(untilKnown, 5000));
untilKnown();
