// UPS Track Alerts. Other formats of UPS, and alerts that print no offset, are left to the Python workers.
import { collapse, field, isObject, readJson, stated, text, unsure } from './reading.js';
import { place } from './places.js';
import { upsMeaning } from './tables.js';
import { beside, fromPair, isoDate } from './times.js';

const ALERT_KEYS = ['activityStatus', 'localActivityDate', 'activityLocation'];
const BY_TYPE = {
  M: { kind: 'scan', status: 'info_received', reason: null },
  MV: { kind: 'scan', status: 'cancelled', reason: null },
  I: { kind: 'scan', status: 'in_transit', reason: null },
  U: { kind: 'info', status: null, reason: null },
};
const UNMAPPED = { kind: 'unmapped', status: null, reason: null };
const OUT_FOR_DELIVERY = /^out for delivery(?: today)?\.*$/i;
const NO_SIGNER = new Set([
  ...['', 'null', 'none', 'n/a', 'na', 'nsr', 'string', 'signature not required', 'signature not req', 'no signature required'],
  ...['signature release on file', 'signature on file', '00:00:00'],
]);

/** The readings of one body. Throws Unsure. */
export function normalizeUps(body) {
  const value = readJson(body);
  const alerts = Array.isArray(value) ? value : [value];
  if (!alerts.length) unsure('an empty list');
  return alerts.map(readAlert);
}

function readAlert(alert) {
  if (!isObject(alert) || !ALERT_KEYS.some((key) => Object.hasOwn(alert, key))) unsure('no track alert');
  const status = part(alert, 'activityStatus');
  const [type, code, description] = ['type', 'code', 'description'].map((name) => text(field(status, name)));
  const further = text(field(status, 'descriptionCode'));
  const { meaning, byCategory } = read(type, code, description);
  const delivered = meaning.status === 'delivered';
  return stated({
    tracking_number: text(field(alert, 'trackingNumber')),
    raw: stated({ type, code, further: further === null ? null : [further] }),
    time: time(alert),
    place: place(printedPlace(part(alert, 'activityLocation'))),
    ...meaning,
    by_category: byCategory,
    description,
    signed_by: delivered ? signer(field(alert, 'receivedBy')) : null,
    estimated_delivery: meaning.kind === 'scan' && !delivered ? estimate(alert) : null,
  });
}

function part(alert, name) {
  const found = field(alert, name) ?? {};
  return isObject(found) ? found : unsure(`${name} is no object`);
}

function printedPlace(location) {
  const code = field(location, 'countryCode');
  if (typeof code === 'object' && code !== null) unsure('a country that is no text');
  return {
    city: field(location, 'city'),
    region: field(location, 'stateProvince'),
    postalCode: field(location, 'postalCode'),
    country: code || field(location, 'country'),
  };
}

function read(type, code, description) {
  if (type === 'I' && code === 'DS' && OUT_FOR_DELIVERY.test(description ?? '')) {
    return { meaning: { kind: 'scan', status: 'out_for_delivery', reason: null }, byCategory: false };
  }
  const known = upsMeaning(type, code);
  if (known) return { meaning: known, byCategory: false };
  const byType = code && type && Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : null;
  return { meaning: byType ?? UNMAPPED, byCategory: byType !== null };
}

function time(alert) {
  const [date, clock, gmtDate, gmtTime, offset] = [
    ...['localActivityDate', 'localActivityTime', 'gmtActivityDate', 'gmtActivityTime', 'gmtOffset'],
  ].map((name) => text(field(alert, name)));
  const printed = `${date} ${clock}`;
  if (gmtDate !== null && gmtTime !== null) return fromPair(printed, `${gmtDate} ${gmtTime}`);
  return offset === null ? unsure('a local time without offset') : beside(printed, offset);
}

function signer(value) {
  const found = text(value);
  if (found === null) return null;
  const name = collapse(found.replace(/^[. ]+/, ''));
  return NO_SIGNER.has(name.toLowerCase()) ? null : name;
}

function estimate(alert) {
  const actual = field(alert, 'actualDeliveryDate') ?? '';
  if (typeof actual !== 'string') unsure('a date that is no text');
  return actual ? null : isoDate(text(field(alert, 'scheduledDeliveryDate')));
}
