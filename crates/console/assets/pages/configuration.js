// Configuration: the keys in force, their origin, keys without effect, and whether the servers agree.

import { html, loadStyle } from '../lib/html.js';
import { useGet } from '../lib/live.js';
import { Empty, Loaded, Note, Silent } from '../lib/states.js';
import { Table } from '../lib/table.js';
import { Term } from '../lib/terms.js';
import { Id, Text, count } from '../lib/words.js';
import { Choice, Name } from './names.js';

loadStyle('./pages.css', import.meta.url);

/** @typedef {{server: number, value: string | null, from: string}} Value */
/** @typedef {{key: string, standing: string, values: Value[], differs: boolean, note: string}} Key */

/** What a standing means, and its level. @type {Record<string, [string, string]>} */
const STANDINGS = {
  obeyed: ['ok', 'It sets what the text says.'],
  replaced: ['muted', 'It has no effect here; the text names what takes its place.'],
  absent: ['warning', 'It asks for a feature that is not in this build.'],
  refused: ['critical', 'Without the feature data could be exposed or lost, so the server does not start with it.'],
  unknown: ['warning', 'No such key is known; it has no effect.'],
};

/** @type {Record<string, (key: Key) => boolean>} */
const SHOWN = {
  all: () => true,
  set: (key) => key.values.some((one) => one.from !== 'default'),
  differs: (key) => key.differs,
  ...Object.fromEntries(Object.keys(STANDINGS).map((standing) => [standing, (/** @type {Key} */ key) => key.standing === standing])),
};

/** @param {{of: string}} props */
const Standing = ({ of }) => html`<span class="badge ${STANDINGS[of]?.[0]}" title=${STANDINGS[of]?.[1]}>${of}</span>`;

/** One value if the servers agree, else one for each. @param {{of: Key}} props */
function Values({ of }) {
  const { values, differs } = of;
  const shown = differs ? values : values.slice(0, 1);
  return html`${shown.map((one) => html`<div key=${one.server}>${differs && html`<span class="badge warning">server ${one.server}</span> `}${one.value === null ? html`<small>not set</small>` : html`<code><${Name} of=${one.value} /></code>`}</div>`)}`;
}

/** @param {{of: Key}} props */
const Origins = ({ of }) => html`${[...new Set((of.differs ? of.values : of.values.slice(0, 1)).map((one) => one.from))].map((from) => html`<div key=${from}>${from === 'default' ? html`<small>default</small>` : html`<${Name} of=${from} />`}</div>`)}`;

/** @type {import('../lib/table.js').Column[]} */
const COLUMNS = [
  { key: 'key', label: 'Key', render: (row) => html`<code><${Name} of=${row.key} /></code>` },
  { key: 'standing', label: 'Standing', render: (row) => html`<${Standing} of=${row.standing} />` },
  { key: 'value', label: 'Value', value: (row) => row.values.map((/** @type {Value} */ one) => one.value ?? '').join(' '), render: (row) => html`<${Values} of=${row} />` },
  { key: 'from', label: 'From', value: (row) => row.values.map((/** @type {Value} */ one) => one.from).join(' '), render: (row) => html`<${Origins} of=${row} />` },
  { key: 'note', label: 'Effect', wide: true },
];

/** @param {import('../lib/route.js').PageProps} props */
export default function Configuration({ query, go }) {
  const config = useGet('/config', { every: 30_000 });
  const show = SHOWN[query.show] ? query.show : 'all';
  return html`<h1>Configuration</h1><${Loaded} of=${config} rows=${10}>${(/** @type {any} */ data) => html`<div class="stack">
    <${Silent} servers=${data.servers} />
    <${Findings} data=${data} go=${go} />
    ${data.dynamic && html`<${Dynamic} of=${data.dynamic} />`}
    <section class="panel"><h2>Keys</h2>
      <${Choice} label="Keys" value=${show} onPick=${(/** @type {string} */ next) => go({ show: next === 'all' ? null : next })}
        of=${Object.keys(SHOWN).map((name) => [name, `${name === 'set' ? 'not default' : name === 'differs' ? 'different' : name} ${count(data.keys.filter(SHOWN[name]).length)}`])} />
      ${STANDINGS[show] && html`<p>${STANDINGS[show][1]}</p>`}
      <${Table} name="keys" caption="keys of the configuration" rows=${data.keys.filter(SHOWN[show])} columns=${COLUMNS} rowKey=${(/** @type {Key} */ row) => row.key} json="/config"
        empty=${html`<${Empty} title=${show === 'differs' ? 'All servers that answered have the same values.' : 'No key fits.'}><p>Keys come from zoo.cfg, from <code>-D</code> properties, and from the defaults.</p></>`} /></section></div>`}</>`;
}

/** @param {{data: any, go: import('../lib/route.js').Go}} props */
function Findings({ data, go }) {
  const different = data.keys.filter((/** @type {Key} */ key) => key.differs).length;
  if (different + data.unknown.length === 0) return null;
  return html`<div class="notes">
    ${different > 0 && html`<${Note} level="warning" sentence=${`The servers differ in ${different === 1 ? 'one key' : `${different} keys`}.`}><p><button type="button" onClick=${() => go({ show: 'differs' })}>Show these</button></p></>`}
    ${data.unknown.map((/** @type {any} */ { server, key, near }) => html`<${Note} key=${`${server} ${key}`} level="warning" sentence=${`Server ${server} has the key "${key}" in its file, which is not known and has no effect.`} way_out=${near && `The nearest known key is ${near}.`} />`)}</div>`;
}

/** @param {{of: {version: string, members: string[], differs: boolean}}} props */
const Dynamic = ({ of }) => html`<section class="panel"><header><h2>Dynamic configuration</h2><span>version <${Id} of=${of.version} /></span></header>
  ${of.differs && html`<${Note} level="warning" sentence="The servers have different versions of it." way_out="A server that was away gets the newest as soon as it follows the leader." />`}
  <ul class="paths">${of.members.map((member) => html`<li key=${member}><code><${Text} of=${member} /></code></li>`)}</ul>
  <p><small>A <${Term} of="reconfiguration">reconfiguration</> is made in <code>ostler shell</code>, with <code>reconfig</code>.</small></p></section>`;
