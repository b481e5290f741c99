// Configuration: the keys in force, their origin, keys without effect, and whether the servers agree.

import { choice, count, empty, html, Id, loaded, Name, Note, paths, table, Term, Text, useGet } from './parts.js';

/** The meaning of a standing, and its level. @type {Record<string, [string, string]>} */
const STANDINGS = {
  obeyed: ['ok', 'These keys set what the text says.'],
  replaced: ['', 'These keys have no effect here; the text names what takes their place.'],
  absent: ['warning', 'These keys ask for features that are not in this build.'],
  refused: ['critical', 'Without these features data could be exposed or lost, so a server does not start with such a key.'],
  unknown: ['warning', 'These keys are not known and have no effect.'],
};
/** @type {[string, (key: ConfigKey) => boolean][]} */
const SHOWN = [
  ['all', () => true], ['not default', (key) => key.values.some((one) => one.from !== 'default')], ['different', (key) => key.differs],
  ...Object.keys(STANDINGS).map((name) => /** @type {[string, (key: ConfigKey) => boolean]} */ ([name, (key) => key.standing === name])),
];

/** A line per server if they differ. @param {ConfigKey} row @param {(value: ConfigValue) => any} draw */
const lines = (row, draw) => (row.differs ? row.values : row.values.slice(0, 1)).map((one) => html`<div class="value" key=${one.server}>${draw(one)}</div>`);

/** @type {Column[]} */
const COLUMNS = [
  { key: 'key', label: 'Key', render: (row) => html`<code class="value"><${Name} of=${row.key} /></code>` },
  { key: 'standing', label: 'Standing', render: (row) => html`<span class="badge ${STANDINGS[row.standing]?.[0]}">${row.standing}</span>` },
  { key: 'value', label: 'Value', value: (row) => row.values.map((/** @type {ConfigValue} */ one) => one.value).join(' '), render: (row) =>
    lines(row, ({ server, value }) => html`${row.differs && html`<small>server ${server}</small> `}${value === null ? html`<small>not set</small>` : html`<code><${Name} of=${value} /></code>`}`) },
  { key: 'from', label: 'From', value: (row) => row.values.map((/** @type {ConfigValue} */ one) => one.from).join(' '), render: (row) => lines(row, ({ from }) => html`<${Name} of=${from} />`) },
  { key: 'note', label: 'Effect', wide: true },
];

/** @param {PageProps} props */
export default function Configuration({ query, go }) {
  const config = useGet('/config', { every: 30_000 });
  const [show, isShown] = SHOWN.find(([name]) => name === query.show) ?? SHOWN[0];
  return html`<h1>Configuration</h1>${loaded(config, ({ keys, unknown, dynamic }) => html`
    ${keys.some((/** @type {ConfigKey} */ key) => key.differs) && html`<${Note} level="warning" sentence="The servers differ in their keys."><p><button type="button" onClick=${() => go({ show: 'different' })}>Show the differences</button></p></>`}
    ${unknown.map((/** @type {any} */ { server, key, near }) => html`<${Note} key=${server + key} level="warning" sentence=${`Server ${server} has the key "${key}", which is not known and has no effect.`} way_out=${near && `The nearest known key is ${near}.`} />`)}
    ${dynamic && html`<section class="panel"><header><h2>Dynamic configuration</h2><span>version <${Id} of=${dynamic.version} /></span></header>
      ${dynamic.differs && html`<${Note} level="warning" sentence="The servers have different versions of it." way_out="A server that was away gets the newest when it follows the leader." />`}
      ${paths(dynamic.members, (member) => html`<code><${Text} of=${member} /></code>`)}
      <p><small>A <${Term} of="reconfiguration">reconfiguration</> is made by “reconfig” in <code>ostler shell</code>.</small></p></section>`}
    <section class="panel"><h2>Keys</h2>${choice('Keys', SHOWN.map(([name, test]) => [name, `${name} ${count(keys.filter(test).length)}`]), show, (next) => go({ show: next === 'all' ? null : next }))}
      ${STANDINGS[show] && html`<p>${STANDINGS[show][1]}</p>`}
      ${table('keys of the configuration', COLUMNS, { name: 'keys', rows: keys.filter(isShown), key: (row) => row.key, json: '/config',
        empty: empty(show === 'different' ? 'The servers that answered have the same values.' : 'No key fits.', 'Keys come from zoo.cfg, from -D properties, and from the defaults.') })}</section>`)}`;
}
