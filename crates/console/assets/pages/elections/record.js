// A saved record of elections: how it is read from a file, and written to one.

const FORMAT = 'ostler-elections-1';
const BYTES_MAX = 32 * 1024 * 1024;

/** @typedef {{voter: number, candidate: number, round: number, epoch: number | string, zxid: string, counts: boolean, changed: boolean}} Vote */
/** @typedef {{at_ms: number, server: number, moment?: number, votes: Vote[]}} Ballots */
/** @typedef {{at_ms: number, server: number, kind: string, sentence: string, rule: string | null, highlights: string[], changed: {voter: number, candidate: number} | null}} Moment */
/** @typedef {{phase: string, from_ms: number, to_ms: number | null}} Band */
/** @typedef {{server: number, known: boolean, bands: Band[]}} Lane */
/** @typedef {{number: number, kind?: string, epoch: number | string | null, winner: number | null, under_way: boolean, began_ms: number, total_for_ms: number | null,
 *   cause: string, summary: string[], phases: {name: string, for_ms: number | null}[], lanes: Lane[], moments: Moment[], ballots: Ballots[], left_out: number}} Election */
/** @typedef {{id: number | null, name: string, state: string, reason: string | null, knows_since_ms: number | null}} Asked */
/** @typedef {{format: string, as_of_ms: number, servers: Asked[], voters: number[], elections: Election[], remarks?: string[]}} Elections */

/** Shapes: an array has items of its one entry; `?` may be null or absent. */
const VOTE = { voter: 'number', candidate: 'number', round: 'number', epoch: 'epoch', zxid: 'zxid' };
const ELECTION = {
  number: 'number', began_ms: 'number', 'winner?': 'number', 'total_for_ms?': 'number', cause: 'string', summary: ['string'], left_out: 'number',
  phases: [{ name: 'string', 'for_ms?': 'number' }],
  lanes: [{ server: 'number', bands: [{ phase: 'string', from_ms: 'number', 'to_ms?': 'number' }] }],
  moments: [{ at_ms: 'number', server: 'number', kind: 'string', sentence: 'string', highlights: ['string'] }],
  ballots: [{ at_ms: 'number', server: 'number', votes: [VOTE] }],
};
const RECORD = { as_of_ms: 'number', voters: ['number'], elections: [ELECTION], servers: [{ 'id?': 'number', name: 'string', state: 'string' }] };

/** The place of the first entry that is not as it must be, or null. @param {any} value @param {any} shape @param {string} at @returns {string | null} */
function wrongPlace(value, shape, at) {
  if (shape === 'zxid') return /^0x[0-9a-f]{1,16}$/.test(value) ? null : at;
  if (shape === 'epoch') return Number.isSafeInteger(value) || /^\d{1,20}$/.test(value) ? null : at;
  if (typeof shape === 'string') return typeof value === shape && (shape !== 'number' || Number.isFinite(value)) ? null : at;
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return at;
    for (const [number, item] of value.entries()) {
      const wrong = wrongPlace(item, shape[0], `${at}[${number}]`);
      if (wrong) return wrong;
    }
    return null;
  }
  if (typeof value !== 'object' || value === null) return at;
  for (const [name, part] of Object.entries(shape)) {
    const key = name.replace('?', '');
    if (key !== name && (value[key] ?? null) === null) continue;
    const wrong = wrongPlace(value[key], part, at ? `${at}.${key}` : key);
    if (wrong) return wrong;
  }
  return null;
}

/** Reads a record; throws an error whose message is for people. @param {string} text @returns {Elections} */
export function readRecord(text) {
  /** @type {any} */
  let record;
  try {
    record = JSON.parse(text);
  } catch {
    throw new Error('it is not JSON. A record is made by “Download” on this page, or by ostler explain election --json.');
  }
  if (record?.format !== FORMAT) throw new Error(`its format is not ${FORMAT}.`);
  const wrong = wrongPlace(record, RECORD, '');
  if (wrong) throw new Error(`${wrong} is missing, or is not as it must be.`);
  return record;
}

/** @param {File} file */
export async function openRecord(file) {
  if (file.size > BYTES_MAX) throw new Error('it is larger than 32 MB.');
  return readRecord(await file.text());
}

/** @param {Elections} record */
export function download(record) {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(new Blob([JSON.stringify(record, null, 1)], { type: 'application/json' }));
  anchor.download = `elections-${new Date(record.as_of_ms).toISOString().slice(0, 19).replaceAll(':', '-')}.json`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}
