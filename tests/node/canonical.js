// Our own format, one event a body. Lists, lines and events with faults are left to the Python workers.
import { field, isObject, readJson, stated, strip, unsure } from './reading.js';
import { place } from './places.js';
import { isoDate, rfc3339 } from './times.js';

const KINDS = new Set(['scan', 'info', 'correction', 'unmapped']);
const STATUSES = new Set([
  ...['info_received', 'picked_up', 'in_transit', 'exception', 'available_for_pickup', 'out_for_delivery', 'delivery_attempted'],
  ...['returning', 'delivered', 'returned', 'cancelled', 'lost', 'destroyed'],
]);
const TZ_SOURCES = new Set(['explicit', 'pair', 'location', 'carrier_default', 'assumed_utc', 'received']);
const PRECISIONS = new Set(['second', 'minute', 'day']);
const REASONS = new Set([
  ...['consignee_absent', 'consignee_refused', 'consignee_moved', 'consignee_requested', 'address_incorrect', 'business_closed'],
  ...['access_problem', 'payment_due', 'identity_missing', 'customs_documents', 'customs_hold', 'customs_refused', 'damaged'],
  ...['missing_contents', 'missorted', 'delayed_carrier', 'weather', 'strike', 'security', 'prohibited_goods', 'unclaimed'],
  ...['label_unreadable', 'held', 'lost', 'stolen', 'destroyed', 'other'],
]);
const ID = /^[\x20-\x7e]{1,200}$/;

/** The one reading of a body. Throws Unsure. */
export function normalizeCanonical(body) {
  const event = readJson(body);
  if (!isObject(event)) unsure('no single event');
  if (!['canonical', undefined].includes(printed(event, 'carrier_id', 64))) unsure('speaks for another carrier');
  const kind = word(event, 'kind', KINDS) ?? 'scan';
  const status = word(event, 'status', STATUSES) ?? null;
  const reason = word(event, 'reason', REASONS) ?? null;
  const corrects = id(event, 'corrects') ?? null;
  const code = printed(event, 'carrier_code', 200) ?? null;
  if ((kind === 'scan') !== (status !== null) && kind !== 'correction') unsure('a status that does not go with the kind');
  if ((kind === 'unmapped' && code === null) || (kind !== 'correction' && corrects !== null)) unsure('fields that do not go with the kind');
  const occurredAt = printed(event, 'occurred_at', 200) ?? unsure('no time');
  const { instant, identity, utc } = rfc3339(occurredAt);
  if (Number(instant.slice(0, 4)) < 1970) unsure('a year that is refused');
  return [
    stated({
      tracking_number: strip(number(event)),
      discriminator: printed(event, 'discriminator', 200),
      native_id: id(event, 'event_id') ?? unsure('no id'),
      kind,
      status,
      reason,
      raw: stated({ code, further: [kind, status ?? '', reason ?? '', corrects ?? '', utc] }),
      time: {
        printed: printed(event, 'occurred_at_raw', 200) ?? occurredAt,
        instant,
        tz_source: word(event, 'tz_source', TZ_SOURCES) ?? 'explicit',
        precision: word(event, 'time_precision', PRECISIONS) ?? 'second',
        identity,
      },
      place: where(field(event, 'location') ?? {}),
      piece: printed(event, 'piece', 200),
      description: printed(event, 'description', 4000),
      signed_by: printed(event, 'signed_by', 200),
      estimated_delivery: estimate(printed(event, 'estimated_delivery', 200)),
      service: service(event),
      corrects,
    }),
  ];
}

/** A text as it stands; undefined where it is absent or null. An empty or over-long one, and anything but a text, is unsure. */
function printed(object, name, lengthMax) {
  const value = field(object, name) ?? undefined;
  if (value !== undefined && (typeof value !== 'string' || !value || value.length > lengthMax)) unsure(`${name} is no plain text`);
  return value;
}

/** What the shipper bought, where it is plainly that: no sign, no long number. */
function service(event) {
  const name = printed(event, 'service', 80);
  return name === undefined || /^[A-Za-z](?:[A-Za-z_ -]|[0-9]{1,3}(?![0-9]))*$/.test(name) ? name : unsure('service is no plain name');
}

function word(event, name, known) {
  const value = printed(event, name, 40);
  return value === undefined || known.has(value) ? value : unsure(`${name} is no known word`);
}

function id(event, name) {
  const value = printed(event, name, 200);
  return value === undefined || ID.test(value) ? value : unsure(`${name} is not plain ASCII`);
}

function number(event) {
  const value = printed(event, 'tracking_number', 200) ?? unsure('no number');
  return /[A-Za-z0-9]/.test(value) ? value : unsure('a number without letters and digits');
}

function where(location) {
  if (!isObject(location)) unsure('location is no object');
  return place({
    city: printed(location, 'city', 200),
    region: printed(location, 'region', 200),
    postalCode: printed(location, 'postal_code', 200),
    country: printed(location, 'country', 200),
    facility: printed(location, 'facility', 200),
  });
}

function estimate(value) {
  if (value === undefined) return null;
  if (value.length === 10 && value[4] === '-') isoDate(value);
  else rfc3339(value);
  return value;
}
