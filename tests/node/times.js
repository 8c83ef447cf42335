// Wall clocks as milliseconds of UTC, so that the difference of two of them is an offset.
import { unsure } from './reading.js';

const MINUTE_MS = 60_000;
const QUARTER_MS = 15 * MINUTE_MS;
const OFFSET_MAX_MS = 14 * 60 * MINUTE_MS;
const OUT_OF_USE = new Set(['1900-01-01', '1970-01-01', '2079-01-01', '9999-12-31']);
const COMPACT = /^(\d{4})(\d\d)(\d\d) (\d\d)(\d\d)(\d\d)$/;
const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|([+-])(\d\d):(\d\d))$/;
const OFFSET = /^(?:UTC|GMT)?[\t-\r ]*([+-]?)(\d{1,2})(?:[:.]?(\d\d))?$/;

const two = (number) => String(number).padStart(2, '0');

/** Throws Unsure for a date or time that does not exist, is of the kind that means `none`, or lies out of the years 1901 to 9998. */
function wall(year, month, day, hour = 0, minute = 0, second = 0) {
  const at = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  const exists =
    year > 1900 && year < 9999 && hour < 24 && minute < 60 && second < 60 && at.getUTCMonth() === month - 1 && at.getUTCDate() === day;
  if (!exists || OUT_OF_USE.has(at.toISOString().slice(0, 10))) unsure('a time that is none');
  return at.getTime();
}

const compact = (printed) => wall(...(COMPACT.exec(printed) ?? unsure('a time in another format')).slice(1).map(Number));

const iso = (wallMs) => new Date(wallMs).toISOString().slice(0, 19);

function withOffset(wallMs, offsetMs) {
  const minutes = Math.abs(offsetMs) / MINUTE_MS;
  return `${iso(wallMs)}${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

const identity = (wallMs) => iso(wallMs).replaceAll(/[-:]/g, '');

/** A local time beside the same in UTC. */
export function fromPair(printed, utc) {
  const [local, other] = [compact(printed), compact(utc)];
  const offset = Math.round((local - other) / QUARTER_MS) * QUARTER_MS;
  if (Math.abs(local - other - offset) > MINUTE_MS || Math.abs(offset) > OFFSET_MAX_MS) unsure('two times that contradict each other');
  return { printed, instant: withOffset(local, offset), tz_source: 'pair', precision: 'second', identity: identity(local) };
}

/** A local time beside its offset. */
export function beside(printed, zone) {
  const local = compact(printed);
  const [, sign, hours, minutes] = OFFSET.exec(zone) ?? unsure('a zone that is no offset');
  const offset = (Number(hours) * 60 + Number(minutes ?? 0)) * MINUTE_MS;
  if (offset > OFFSET_MAX_MS) unsure('an offset that is none');
  const instant = withOffset(local, sign === '-' ? -offset : offset);
  return { printed, instant, tz_source: 'explicit', precision: 'second', identity: identity(local), zone };
}

/** `20260301` or `2026-03-01` as an ISO date; null where nothing is printed. */
export function isoDate(printed) {
  if (printed === null) return null;
  const [, year, , month, day] = /^(\d{4})(-?)(\d\d)\2(\d\d)$/.exec(printed) ?? unsure('a date in another format');
  return iso(wall(Number(year), Number(month), Number(day))).slice(0, 10);
}

/** A time of RFC 3339: its own spelling with all six decimals or none, its identity, and the same in UTC as Python prints it. */
export function rfc3339(printed) {
  const [, year, month, day, hour, minute, second, decimals, zone, sign, hours, minutes] =
    RFC_3339.exec(printed) ?? unsure('a time in another format');
  const local = wall(...[year, month, day, hour, minute, second].map(Number));
  const offset = zone === 'Z' ? 0 : (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === '-' ? -1 : 1);
  if (Math.abs(offset) > OFFSET_MAX_MS || Number(minutes ?? 0) > 59) unsure('an offset that is none');
  const micros = (decimals ?? '').padEnd(6, '0');
  const fraction = Number(micros) ? `.${micros}` : '';
  const spelled = withOffset(local, offset);
  return {
    instant: spelled.slice(0, 19) + fraction + spelled.slice(19),
    identity: identity(local) + fraction,
    utc: `${iso(local - offset)}${fraction}+00:00`,
  };
}
